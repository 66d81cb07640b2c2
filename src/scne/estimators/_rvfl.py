"""Random vector functional-link networks as a scikit-learn regressor."""

from scne.estimators._network import NetworkRegressor
from scne.estimators.inputs._types import RandomState
from scne.fitting import LARGEST_SCOPE, DrawnPlan, check_choice, check_integer, check_real
from scne.networks import ACTIVATIONS
from scne.rows import INPUT_SCALINGS


class RVFLRegressor(NetworkRegressor):
    """A random vector functional-link network: hidden nodes drawn at random, output weights by least squares.

    Minimises ``|y - H b|^2 + ridge |b|^2``, where the columns of H are ``n_hidden`` random nodes and, with direct
    links, the scaled inputs.

    Parameters
    ----------
    n_hidden : int, default=100
    scope : float, default=1.0
        alpha: weights and biases are uniform in [-alpha, alpha].
    direct_link : bool, default=True
        Also link the inputs to the output. The base models of DNNE have no such links.
    activation : {"sigmoid", "tanh"}, default="sigmoid"
    ridge : float, default=1e-6
        Added to the diagonal of H'H. Zero gives the pseudo-inverse of H (see `SCNRegressor`).
    scaling : {"0-1", "min-max", "standard", "none"}, default="0-1"
        How inputs are scaled internally, and whether they are clipped to the range seen in fit (see `SCNRegressor`).
    target_scaling : {"0-1", "standard", "none"}, default="standard"
        How targets are scaled internally. Predictions are in the units of y.
    device : str or None, default=None
        Where computations run: "cuda", "auto", "cpu", or None, which follows X (see `SCNRegressor`).
    precision : {"auto", "float32", "tf32", "float64"}, default="auto"
        Of the sums on a device (see `SCNRegressor`).
    n_jobs : int or None, default=None
        Threads; None is every core. The model does not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    n_hidden_ : int
    input_weights_ : ndarray of shape (n_columns, n_hidden_)
    biases_ : ndarray of shape (n_hidden_,)
    output_weights_ : ndarray of shape (n_hidden_, n_outputs)
    direct_weights_ : ndarray of shape (n_columns, n_outputs) or None
    calibration_ : ndarray of shape (m, n_outputs) or None
        Ascending absolute errors on held-out rows, in units of y and divided by the scale of the row (1 in the mean),
        from which prediction intervals come.
    n_rows_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from scne import RVFLRegressor
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> model = RVFLRegressor(n_hidden=30, scope=10, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> model.score(X, np.sin(X[:, 0])) > 0.999
    True
    """

    _PER_GROUP = ("n_hidden", "scope")

    def __init__(
        self,
        n_hidden: int = 100,
        *,
        scope: float = 1.0,
        direct_link: bool = True,
        activation: str = "sigmoid",
        ridge: float = 1e-6,
        scaling: str = "0-1",
        target_scaling: str = "standard",
        device: str | None = None,
        precision: str = "auto",
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.scope = scope
        self.direct_link = direct_link
        self.activation = activation
        self.ridge = ridge
        self.scaling = scaling
        self.target_scaling = target_scaling
        self.device = device
        self.precision = precision
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        # Nodes that are drawn over all ramps of a column would all but never bend at one of them.
        check_choice("scaling", self.scaling, tuple(name for name in INPUT_SCALINGS if "ramps" not in name))
        super()._check_parameters()
        check_integer("n_hidden", self.n_hidden, 1)
        check_real("scope", self.scope, below=LARGEST_SCOPE, open_left=True)
        check_choice("activation", self.activation, tuple(ACTIVATIONS))

    def _member_plan(self) -> DrawnPlan:
        return DrawnPlan(self.n_hidden, self.scope, self.activation, bool(self.direct_link), self.ridge)
