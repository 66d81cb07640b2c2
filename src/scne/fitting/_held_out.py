"""Sums over the rows that a fit kept from its search, to choose lambda and the ridge on."""

from dataclasses import dataclass

from scne.ncl import EnsembleSystem


@dataclass(frozen=True, eq=False)
class HeldOutSums:
    """Sums over the rows that a fit held out to choose on.

    Attributes
    ----------
    system : EnsembleSystem
    fitted_too : bool
        Whether the rows are also among those of the fit's own system, as a share of the training rows is and rows that
        the user gave are not.
    """

    system: EnsembleSystem
    fitted_too: bool

    def left_of(self, everything: EnsembleSystem) -> EnsembleSystem:
        """The system of the rows that were not held out."""
        return everything.without(self.system) if self.fitted_too else everything
