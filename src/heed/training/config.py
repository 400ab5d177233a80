"""The `[training]` table of a recipe."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from heed.core.config import Config
from heed.nn.contract import Smoothing


class TrainingConfig(Config):
    """Optimisation, limits, validation, checkpoints and averaging."""

    tokens_per_batch: int = Field(default=4096, ge=16)
    """Size of a batch: number of sentences times the length of the longest, padding included."""
    context: int = Field(default=128, ge=1)
    """For streams and windows of text: tokens per segment or window."""
    num_streams: int = Field(default=20, ge=1)
    """For a stream of text: number of parallel streams over all processes (replaces tokens_per_batch)."""
    random_context: bool = False
    """For a stream of text: segments of random length around `context`, with a proportional rate (AWD-LSTM)."""
    accumulate: int = Field(default=1, ge=1)
    """Batches per update, whose gradients are accumulated."""
    loader_workers: int = Field(default=0, ge=0)
    """Processes that prepare batches, for a GPU that waits for subword dropout (0: one thread)."""
    parallel: Literal["data", "sharded"] = "data"
    """With several processes: each holds the whole model ("data") or, for models that write token by token, a shard of
    every weight ("sharded")."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Number format of the forward and backward pass; the weights are kept in float32."""
    reduction: Literal["mean", "sum"] = "mean"
    """The loss of an update: the mean over its targets, or their sum, as if each made an update of its own."""
    optimizer: Literal["adam", "adamw", "sgd", "muon"] = "adam"
    """Adam, Adam with decoupled weight decay, plain stochastic gradient descent, or Muon for matrices between hidden
    layers and AdamW for the other weights."""
    lr: float = Field(default=1e-3, gt=0)
    """Peak learning rate; with the Noam schedule, a factor on the published rate (1: that rate). A recipe file must set
    this factor."""
    beta1: float = Field(default=0.9, ge=0, lt=1)
    """Decay of the first moment in Adam."""
    beta2: float = Field(default=0.98, ge=0, lt=1)
    """Decay of the second moment in Adam."""
    epsilon: float = Field(default=1e-9, gt=0)
    """Term in the denominator of Adam that prevents division by zero."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Weight decay: L2 regularisation (AdamW: decoupled)."""
    clip_norm: float = Field(default=1.0, ge=0)
    """Maximum global norm of the gradient (0: no clipping)."""
    schedule: Literal["noam", "inverse_sqrt", "cosine", "linear", "constant", "epochs", "plateau"] = "inverse_sqrt"
    """Learning rate schedule after the warm-up."""
    lr_decay: float = Field(default=2.0, ge=1)
    """Divisor of the rate: before each epoch ("epochs"), or when validation does not improve ("plateau")."""
    decay_after: int = Field(default=4, ge=0)
    """With schedule "epochs": number of epochs before the first decay."""
    warmup_steps: int = Field(default=400, ge=0)
    """Updates during which the rate rises linearly."""
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    """Share of probability that is moved from the true token to the vocabulary."""
    smoothing_kind: Literal["uniform", "others", "no_padding"] = "uniform"
    """Convention of label smoothing (see heed.nn.heads)."""
    r_drop: float = Field(default=0.0, ge=0)
    """α of R-Drop, which makes two passes with different dropout agree; about twice the time (0: off)."""
    truth_probability: float = Field(default=1.0, ge=0, le=1)
    """Scheduled sampling: final probability that a position reads the true token before it, and not one that the model
    predicts (1: always the truth, teacher forcing)."""
    truth_decay: Literal["linear", "exponential", "inverse_sigmoid"] = "inverse_sigmoid"
    """How this probability falls from 1 (see heed.tasks.scheduled_sampling)."""
    truth_decay_updates: float = Field(default=1000.0, ge=1)
    """k of the decay, in updates: linear 1 - i/k, exponential e^(-i/k), inverse sigmoid k / (k + e^(i/k))."""
    risk: Literal["none", "bleu", "chrf"] = "none"
    """Minimum risk training: instead of the likelihood, minimise the expected value of 1 - sentence BLEU or chrF (see
    heed.tasks.translation.minimum_risk). For a translator that continues from another run (--init)."""
    risk_samples: int = Field(default=16, ge=1, le=10_000)
    """With risk: k, the translations that are sampled for each source; 100 in the paper."""
    risk_sharpness: float = Field(default=0.005, gt=0)
    """With risk: α, the exponent of the probabilities of these translations."""
    scorer: str = ""
    """For phrases: the model.kind of a second model, such as "transformer", which is then trained on the same data, in
    the folder `scorer` of the run, and scores what they propose ("": none). It has heed's own settings, and the time
    that phrases leave of max_minutes, at least a quarter; their weights are tuned for half of it at most."""
    freeze: Literal["none", "embeddings", "reader"] = "none"
    """For a reader with a head: keep the vectors of tokens, or the whole reader, as they are at the beginning."""
    unfreeze_every: float = Field(default=0.0, ge=0)
    """Gradual unfreezing: the head alone is trained first, and after this number of epochs each the next layer below
    it is too (0: all layers from the beginning)."""
    layer_decay: float = Field(default=1.0, gt=0, le=1)
    """Discriminative rates: the rate of a layer is this factor times that of the layer above it."""
    max_steps: int = Field(default=100_000, ge=1)
    """Stop after this number of updates."""
    max_epochs: int = Field(default=0, ge=0)
    """Stop after this number of passes over the data (0: no limit). The last update is completed with batches of the
    next pass, so one that takes more batches (`accumulate`) than a pass has reads several."""
    max_minutes: float = Field(default=0.0, ge=0)
    """Stop after this number of minutes, validation included (0: no limit)."""
    stop_metric: str = "bleu"
    """Validation score that selects the weights to keep and the time to stop."""
    patience: int = Field(default=8, ge=0)
    """Stop after this number of validations without a better score (0: never)."""
    eval_every: int = Field(default=500, ge=1)
    """Updates between validations."""
    save_every: int = Field(default=500, ge=1)
    """Updates between checkpoints."""
    log_every: int = Field(default=50, ge=1)
    """Updates between lines of metrics.jsonl."""
    keep_checkpoints: int = Field(default=3, ge=1)
    """Number of checkpoints to keep; older ones are deleted."""
    average: Literal["ema", "last", "asgd", "nt_asgd", "none"] = "ema"
    """Weights to validate and keep: exponential moving average ("ema"), mean of the last validated ones ("last"), mean
    of all ("asgd") or of all since validation stopped improving ("nt_asgd", AWD-LSTM), or not averaged ("none")."""
    ema_decay: float = Field(default=0.999, ge=0, lt=1)
    """With average = "ema": decay per update (smaller at the beginning)."""
    average_last: int = Field(default=5, ge=1)
    """With average = "last": number of validated weights that are averaged."""
    nonmonotone: int = Field(default=5, ge=1)
    """With average = "nt_asgd": averaging starts when a score is worse than the best, this many validations ago."""
    tensorboard: bool = False
    """Also write TensorBoard event files (requires the package tensorboard)."""

    @property
    def smoothing(self) -> Smoothing:
        """The label smoothing, as heads take it."""
        return Smoothing(self.label_smoothing, self.smoothing_kind)
