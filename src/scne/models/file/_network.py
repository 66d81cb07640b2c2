"""A single network, `SCNRegressor` or `RVFLRegressor`, as content of a file and back."""

from typing import Any

from scne.estimators import RVFLRegressor, SCNRegressor
from scne.models._errors import damaged
from scne.models.file._parts import StoredMember, Tensors
from scne.models.file._shelf import Shelf, field
from scne.models.file._system import read_system, read_weight_scale, store_system, store_weight_scale
from scne.networks import StopReason


def store_network(model: SCNRegressor | RVFLRegressor, with_system: bool) -> tuple[dict[str, Any], Tensors]:
    """The fitted parts of a network."""
    curves, reason = {}, None
    if isinstance(model, SCNRegressor):
        curves = {"training_curve": model.loss_curve_}
        if model.validation_curve_ is not None:
            curves["validation_curve"] = model.validation_curve_
        reason = StopReason(model.stop_reason_)
    member = StoredMember("network", model.layer_, model.output_weights_, model.direct_weights_, curves, reason)
    document: dict[str, Any] = {"members": [member.to_record()], **store_weight_scale(model)}
    tensors = member.to_tensors("members.0")
    if with_system:
        document["system"], sums = store_system("system", getattr(model, "system_", None))
        tensors |= sums
    return document, tensors


def fill_network(
    model: SCNRegressor | RVFLRegressor, members: list[StoredMember], document: dict[str, Any], shelf: Shelf
) -> None:
    """Give an unfitted network the fitted parts of a file."""
    if len(members) != 1:
        raise damaged(f"a {type(model).__name__} is one network, but it holds {len(members)}")
    member = members[0]
    model.layer_ = member.layer
    model.n_hidden_ = member.layer.n_nodes
    model.input_weights_ = member.layer.weights
    model.biases_ = member.layer.biases
    model.output_weights_ = member.output_weights
    model.direct_weights_ = member.direct_weights
    if isinstance(model, SCNRegressor):
        if member.stop_reason is None or "training_curve" not in member.curves:
            raise damaged("the training curve of its search, or the reason for its end, is missing")
        model.loss_curve_ = member.curves["training_curve"]
        model.validation_curve_ = member.curves.get("validation_curve")
        model.stop_reason_ = member.stop_reason.value
    # Files without a system, and all of the first two formats, have no such record.
    if "system" in document:
        model.system_ = read_system("system", field(document, "system", dict), shelf, members)
    model.weight_scale_ = read_weight_scale(document)
