"""Displays in the form of scikit-learn's."""
