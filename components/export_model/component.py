"""The KFP face of export: Dataset and Model (the run) in, Model (what serves) out."""

from kfp import dsl
from kfp.dsl import Dataset, Input, Model, Output

from components.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def export_model(
    dataset: Input[Dataset],
    run: Input[Model],
    model: Output[Model],
    formats: list[str] = ["saved_model"],
) -> None:
    """Exports a run's model with its preprocessing, after comparing its outputs on real rows.

    Args:
        dataset: what shard_data made; rows of it are put through the exported model.
        run: what train_model made.
        model: the SavedModel directory.
        formats: what to write: saved_model.
    """
    from components.export_model import step

    step.run(dataset, run, model, formats=formats)
