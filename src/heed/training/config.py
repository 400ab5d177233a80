"""What can be chosen about training?"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from heed.core.config import Config
from heed.nn.contract import Smoothing


class TrainingConfig(Config):
    """How the weights are learned, how long, and which of them are kept."""

    tokens_per_batch: int = Field(default=4096, ge=16)
    """Sentences of a batch times the longest side among them, padding included."""
    context: int = Field(default=128, ge=1)
    """Text as one stream or in windows: tokens of a segment or of a window."""
    num_streams: int = Field(default=20, ge=1)
    """Text as one stream: parallel streams that it is cut into, over all processes; tokens_per_batch is not asked."""
    random_context: bool = False
    """Text as one stream: segments of random length around `context`, the rate in proportion (AWD-LSTM)."""
    accumulate: int = Field(default=1, ge=1)
    """Batches whose gradients are added up for one update."""
    loader_workers: int = Field(default=0, ge=0)
    """Processes that prepare batches: for a GPU that waits for subword dropout (0: a thread prepares them)."""
    parallel: Literal["data", "sharded"] = "data"
    """With several processes: the whole model in each ("data"), or a part of every weight in each ("sharded")."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Arithmetic of the forward and backward pass; the weights themselves are kept in float32."""
    optimizer: Literal["adam", "adamw", "sgd"] = "adam"
    """Adam, Adam with decoupled weight decay, or plain stochastic gradient descent."""
    lr: float = Field(default=1e-3, gt=0)
    """Peak learning rate; with the Noam schedule a factor on the published rate."""
    beta1: float = Field(default=0.9, ge=0, lt=1)
    """Adam's decay of the mean gradient."""
    beta2: float = Field(default=0.98, ge=0, lt=1)
    """Adam's decay of the mean squared gradient."""
    epsilon: float = Field(default=1e-9, gt=0)
    """Adam's term against division by zero."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Decay of the weights towards zero: L2 regularisation (AdamW: decoupled)."""
    clip_norm: float = Field(default=1.0, ge=0)
    """Largest global norm of the gradient (0: no clipping)."""
    schedule: Literal["noam", "inverse_sqrt", "cosine", "constant", "epochs", "plateau"] = "inverse_sqrt"
    """Course of the learning rate after the warm-up."""
    lr_decay: float = Field(default=2.0, ge=1)
    """What the rate is divided by, with schedule "epochs" before each epoch, "plateau" when validation is no better."""
    decay_after: int = Field(default=4, ge=0)
    """With schedule "epochs": epochs before the rate goes down."""
    warmup_steps: int = Field(default=400, ge=0)
    """Updates during which the rate rises linearly."""
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    """Share of probability taken from the true token and spread over the vocabulary."""
    smoothing_kind: Literal["uniform", "others", "no_padding"] = "uniform"
    """Which convention of label smoothing (see heed.nn.heads)."""
    r_drop: float = Field(default=0.0, ge=0)
    """α of R-Drop: two passes with different dropout should say the same (0: one pass; about twice the time)."""
    max_steps: int = Field(default=100_000, ge=1)
    """Stop after so many updates."""
    max_epochs: int = Field(default=0, ge=0)
    """Stop after so many passes over the data (0: no limit)."""
    max_minutes: float = Field(default=0.0, ge=0)
    """Stop after so many minutes of training, validation included (0: no limit)."""
    stop_metric: str = "bleu"
    """Validation score that chooses the weights to keep and when to stop."""
    patience: int = Field(default=8, ge=0)
    """Stop after so many validations without a better score (0: never)."""
    eval_every: int = Field(default=500, ge=1)
    """Updates between validations."""
    save_every: int = Field(default=500, ge=1)
    """Updates between checkpoints."""
    log_every: int = Field(default=50, ge=1)
    """Updates between lines in metrics.jsonl."""
    keep_checkpoints: int = Field(default=3, ge=1)
    """Checkpoints kept for resuming; the oldest are deleted."""
    average: Literal["ema", "last", "asgd", "nt_asgd", "none"] = "ema"
    """Weights to validate and keep: exponential moving average, mean of the last saved ones, mean of all ("asgd") or of
    all since validation no longer improved ("nt_asgd", AWD-LSTM's), or the plain ones."""
    ema_decay: float = Field(default=0.999, ge=0, lt=1)
    """Share of the old average that each update keeps (smaller at the very beginning)."""
    average_last: int = Field(default=5, ge=1)
    """With average = "last": how many validated weights are averaged."""
    nonmonotone: int = Field(default=5, ge=1)
    """With average = "nt_asgd": it begins when a score is worse than the best of those so many validations ago."""
    tensorboard: bool = False
    """Also write TensorBoard event files (needs the package tensorboard)."""

    @property
    def smoothing(self) -> Smoothing:
        """The label smoothing as the heads take it."""
        return Smoothing(self.label_smoothing, self.smoothing_kind)
