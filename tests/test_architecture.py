"""Imports run upward in the table of docs/ARCHITECTURE.md, and light modules stay light.

Every import counts, at the top of a file or inside a function.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import pytest

from heed.models import MODELS
from heed.tasks import TASKS

SRC = Path(__file__).resolve().parent.parent / "src"

# A package or module of heed imports only from lines above its own. `heed` is the package's own __init__.py.
LINES = """
    core
    text
    images
    metrics
    statistical
    nn
    data
    models
    decoding
    inference
    tasks
    members
    training
    recipe run
    transfer
    evaluation integrity
    report
    limits
    planner
    scorer
    execute
    api
    compress inspect export memory
    documents
    cluster
    tasks.member
    serve
    cli heed
    __main__
"""
RANK = {name: rank for rank, line in enumerate(LINES.split("\n")) for name in line.split()}

# Names of one line that may import each other, as the modules inside one package may: without cycles.
TOGETHER = [{"recipe", "run"}, {"cli", "heed"}]

# Packages that a package does not import, although the order would allow it.
FORBIDDEN = {
    "core": ["torch"],
    "text": ["torch"],
    "images": ["torch"],
    "metrics": ["torch"],
    "cluster": ["torch"],
    "statistical": ["torch"],
    "nn": ["heed.text", "heed.recipe"],
    "decoding": ["heed.models"],  # any model that keeps the contract
    "inference": ["heed.models"],
    "training": ["heed.models"],  # the recipe's business
}

TASK_FOLDERS = [path.name for path in (SRC / "heed" / "tasks").iterdir() if (path / "__init__.py").is_file()]

HEAVY = ["torch", "numpy", "sacrebleu", "tokenizers", "transformers", "pyarrow", "matplotlib", "ray"]


def module_name(path: Path) -> str:
    """`src/heed/nn/states.py` -> `heed.nn.states`."""
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted((SRC / "heed").rglob("*.py"))}


def imports_of(nodes: Iterable[ast.AST], package: str) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that a file imports; a name inside a module counts as that module."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = resolve_name("." * node.level + (node.module or ""), package)
            for alias in node.names:
                inner = f"{origin}.{alias.name}"
                yield node.lineno, inner if inner in MODULES else origin


@dataclass(frozen=True)
class Facts:
    """What the tests below ask about a module."""

    imports: list[tuple[int, str]]
    isinstance_of_models: set[str]
    openings: set[str]
    clocks: set[str]
    imports_from_time: bool
    strings: set[str]
    reads_json: bool


@cache
def facts() -> dict[str, Facts]:
    """Each module is parsed once for all tests of a process, and its tree is not kept."""
    return {module: facts_of(module, path) for module, path in MODULES.items()}


def facts_of(module: str, path: Path) -> Facts:
    """Parse one module."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    return Facts(
        imports=list(imports_of(nodes, package)),
        isinstance_of_models=isinstance_of_models(nodes),
        openings=openings(nodes),
        clocks={ast.unparse(node) for node in attributes if node.attr in CLOCK_METHODS} & WALL_CLOCK,
        imports_from_time=any(isinstance(node, ast.ImportFrom) and node.module == "time" for node in nodes),
        strings=strings_of(nodes),
        reads_json=any(node.attr in ("load", "loads") and ast.unparse(node.value) == "json" for node in attributes),
    )


def isinstance_of_models(nodes: list[ast.AST]) -> set[str]:
    """Classes of `heed.models` that a file imports and asks for with `isinstance`."""
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    models = {alias.name for node in imports if inside(node.module or "", "heed.models") for alias in node.names}
    asked = {
        name.id
        for call in nodes
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "isinstance"
        for name in ast.walk(call.args[1])
        if isinstance(name, ast.Name)
    }
    return models & asked


def strings_of(nodes: list[ast.AST]) -> set[str]:
    """The string constants of a file, without docstrings."""
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    constants = (node.value for node in nodes if isinstance(node, ast.Constant) and id(node) not in docstrings)
    return {value for value in constants if isinstance(value, str)}


def top(module: str) -> str:
    """The name of a module's row in the table; the folder of any task is `tasks.member`."""
    _, *names = module.split(".")
    if names[:1] == ["tasks"] and any(inside(module, f"heed.tasks.{name}") for name in TASK_FOLDERS):
        return "tasks.member"
    return names[0] if names else module


def inside(module: str, package: str) -> bool:
    """Whether a module is the package or lies in it."""
    return module == package or module.startswith(package + ".")


def objection(importer: str, imported: str) -> str | None:
    """The reason why the module `importer` may not import `imported`; None if it may."""
    for name in FORBIDDEN.get(top(importer), []):
        if inside(imported, name):
            return f"{top(importer)} does not import {name}"
    if not inside(imported, "heed") or top(importer) == top(imported):
        return None
    if top(imported) == "tasks.member":
        return (
            "nothing outside the folder of a task imports it: TASKS names it, and Task and Predictor say what it can do"
        )
    if unknown := {top(importer), top(imported)} - RANK.keys():
        return f"not in the table: {', '.join(sorted(unknown))}"
    if any({top(importer), top(imported)} <= names for names in TOGETHER):
        return None
    if RANK[top(imported)] < RANK[top(importer)]:
        return None
    return f"{top(importer)} may import only from lines above its own, and {top(imported)} is not"


def test_every_import_runs_upward_in_the_table() -> None:
    wrong = [
        f"{MODULES[module].relative_to(SRC)}:{line}: {imported}: {reason}"
        for module, found in facts().items()
        for line, imported in found.imports
        if (reason := objection(module, imported))
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_every_package_and_module_is_in_the_table() -> None:
    assert {top(module) for module in MODULES} <= RANK.keys()


def test_no_module_imports_itself_through_others() -> None:
    graph = {module: {name for _, name in found.imports} for module, found in facts().items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("cycle: " + " <- ".join(error.args[1]))


def test_no_module_asks_for_the_class_of_a_model() -> None:
    """A model declares what others need to know of it. Exports to `transformers` read the config of their one model."""
    exports = ("heed.export.gpt2", "heed.export.bert", "heed.export.marian", "heed.export.onnx")
    wrong = {
        module: found.isinstance_of_models
        for module, found in facts().items()
        if found.isinstance_of_models and module not in exports
    }
    assert not wrong


# Calls that open, read, map or replace a file, or copy one.
OPENING = {
    "open", "fdopen", "read_text", "read_bytes", "write_text", "write_bytes", "load_file", "save_file", "safe_open",
    "memmap", "open_memmap", "fromfile", "copyfile", "copy2", "copytree", "atomic_write", "open_output",
    "open_text_output",
    "mmap.mmap", "np.load", "np.save", "np.savez", "json.load", "tomllib.load", "torch.save", "shutil.copy",
}  # fmt: skip

# Who does so, and why it is not a file of a run folder, or how it is checked. Run folders are read by RunFiles and
# written by it; core.own_files opens what has checksums of its own.
OPENERS = {
    "heed.core.files": {"open": "writes new files under hidden names; hashes checked paths"},
    "heed.core.own_files": {"open": "the opener", "fdopen": "the opener"},
    "heed.core.run_files": {"atomic_write": "the writer", "open": "own_files, through RunFiles"},
    "heed.core.run_manifest": {"atomic_write": "the manifest", "open": "its lock"},
    "heed.core.environment": {"read_text": "the system's own files"},
    "heed.core.toml": {"open": "a recipe that the user names"},
    "heed.text.archives": {
        "open": "a corpus that the user names", "atomic_write": "a file that the user names", "open_output": "the same",
    },
    "heed.text.hashing": {"mmap.mmap": "memory, no file"},
    "heed.tasks.translation.improving": {
        "atomic_write": "the record of the steps", "read_bytes": "the same record, checked",
        "copytree": "a run of its own",
        "read_text": "text that it wrote",
    },
    "heed.tasks.translation.synthetic_pairs": {
        "atomic_write": "text for trainings", "open": "text that it wrote", "read_text": "translations that it wrote",
    },
    "heed.tasks.translation.restoring": {"atomic_write": "text for trainings", "open": "text that it wrote"},
    "heed.cli.data_curve": {"atomic_write": "a result for the user"},
    "heed.text.synthetic": {"read_bytes": "a corpus for the user", "write_bytes": "the same"},
    "heed.text.tokenizers": {"atomic_write": "a tokenizer that the user names"},
    "heed.statistical.arpa": {"open_output": "a file for another program"},
    "heed.statistical.saved_arrays": {"load_file": "after read_header"},
    "heed.nn.weight_file": {"atomic_write": "weights, which hold their SHA-256"},
    "heed.data.line_hashes": {"memmap": "a file opened by RunFiles", "np.save": "into RunFiles"},
    "heed.data.store": {
        "open": "writes a new store", "mmap.mmap": "a file opened by own_files", "write_text": "its manifest",
    },
    "heed.data.image_store": {"open": "writes a new store", "write_text": "its manifest"},
    "heed.run": {"copytree": "a scorer without links, into a new run"},
    "heed.data.workers": {"fdopen": "the pipe to the training"},
    "heed.training.checkpoints": {
        "load_file": "after own_path", "save_file": "a new checkpoint", "write_bytes": "a new checkpoint",
    },
    "heed.training.manifest": {"write_text": "a new checkpoint"},
    "heed.report.curves": {"atomic_write": "a picture that the user names"},
    "heed.export.ctranslate2": {"write_text": "a new converted model", "write_bytes": "the same"},
    "heed.export.bert": {"save_file": "another program's folder"},
    "heed.export.bert_tokenizer": {"read_text": "another program's folder", "write_text": "the same"},
    "heed.export.argos": {"atomic_write": "a file for another program", "read_bytes": "the same"},
    "heed.export.formats": {
        "atomic_write": "findings and a card in another program's folder", "open": "a file for another program",
    },
    "heed.export.programs": {"read_text": "another program's folder", "open": "a plain copy for another program"},
    "heed.export.gpt2": {"save_file": "another program's folder", "write_bytes": "the same"},
    "heed.export.hugging_face": {
        "read_text": "a folder that the user names", "load_file": "the same", "write_text": "another program's folder",
    },
    "heed.export.marian": {"save_file": "another program's folder"},
    "heed.export.marian_tokenizer": {"write_bytes": "another program's folder"},
    "heed.export.moses": {"open_text_output": "a file for another program"},
    "heed.export.word2vec": {"open_text_output": "a file for another program"},
    "heed.api": {"open": "a predictor, which reads through its run"},
    "heed.tasks.translation.predictor": {"open": "the same"},
    "heed.tasks.translation.distillation": {
        "open": "translations in a folder of their own", "read_bytes": "the same", "atomic_write": "the same",
    },
    "heed.tasks.translation.corrections": {"atomic_write": "training data in a folder of its own"},
    "heed.export.converted_run": {"atomic_write": "settings in a new converted model"},
    "heed.inspect.page_file": {"read_text": "a file of the package"},
    "heed.serve.auth": {"read_text": "keys that the user names"},
    "heed.serve.apis.operations": {"read_bytes": "a file of the package"},
    "heed.cli.main": {"open": "the null device"},
    "heed.cluster.corpus": {
        "atomic_write": "results in a folder of their own", "read_bytes": "the same", "open": "loads a run",
    },
    "heed.cluster.repeats": {
        "np.load": "results in a folder of their own", "np.save": "the same", "atomic_write": "the same",
    },
    "heed.documents.isolated": {"open": "a fact about the process", "write_text": "the same"},
    "heed.cli.data_corpus": {"atomic_write": "results in a folder of their own", "read_bytes": "the same"},
    "heed.cli.align": {
        "atomic_write": "a page that the user names", "open_text_output": "a dictionary that the user names",
    },
    "heed.cli.report": {"atomic_write": "a page that the user names"},
    "heed.cli.memory": {"open_text_output": "a file that the user names"},
    "heed.cli.inspect": {"atomic_write": "a page that the user names"},
    "heed.cli.evaluate_translations": {"open_text_output": "a file that the user names"},
    "heed.cli.translate_file": {"open_output": "a file that the user names"},
}  # fmt: skip


OPENING_METHODS = {name.rpartition(".")[2] for name in OPENING}


def openings(nodes: Iterable[ast.AST]) -> set[str]:
    """The calls of OPENING in a file, but for classes' and RunFiles' own methods of such a name."""
    found = set()
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
        if called not in OPENING_METHODS:
            continue
        name = ast.unparse(node.func)
        owner, _, method = name.rpartition(".")
        is_class = owner.isidentifier() and owner[0].isupper() and owner != "Path"
        is_reader = not owner and name in ("read_text", "write_text")  # of text that the user names, and of a terminal
        if not is_class and not is_reader and owner.split(".")[-1] != "files":
            found |= {name, method} & OPENING
    return found


def test_files_of_run_folders_are_opened_in_one_way_alone() -> None:
    """A new call of this kind belongs into RunFiles, or into the table with the reason why it does not."""
    found = {module: known.openings for module, known in facts().items()}
    unknown = {
        module: sorted(calls - OPENERS.get(module, {}).keys())
        for module, calls in found.items()
        if calls - OPENERS.get(module, {}).keys()
    }
    assert not unknown
    gone = {
        module: sorted(reasons.keys() - found.get(module, set()))
        for module, reasons in OPENERS.items()
        if reasons.keys() - found.get(module, set())
    }
    assert not gone, "the table names calls that are no more"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("(run.folder / 'a').read_text()", {"read_text"}),
        ("open(path)", {"open"}),
        ("path.open('rb')", {"open"}),
        ("Path(name).open()", {"open"}),
        ("np.load(path)", {"np.load"}),
        ("TokenStore.open(folder)", set()),
        ("run.files.open(VALID)", set()),
        ("loaded.load(path)", set()),
    ],
)
def test_openings_are_told_from_other_calls(code: str, found: set[str]) -> None:
    assert openings(ast.walk(ast.parse(code))) == found


WALL_CLOCK = {"time.time", "time.time_ns", "time.gmtime", "time.localtime", "datetime.now", "datetime.utcnow"}
CLOCK_METHODS = {name.rpartition(".")[2] for name in WALL_CLOCK}
DATED = {
    "heed.serve.telemetry": {"time.gmtime"},  # lines of the log
    "heed.serve.apis.openai": {"time.time"},  # a field of OpenAI's answers
    "heed.evaluation.score_log": {"datetime.now"},  # entries of the log of scores
    "heed.memory.store": {"datetime.now"},  # when a unit was added
}
"""Where a date is written. Whatever is measured or waited for uses a clock that is never set back."""


def test_time_is_measured_by_clocks_that_are_never_set_back() -> None:
    partly = [module for module, known in facts().items() if known.imports_from_time]
    assert not partly, "import time, and call time.monotonic() by its whole name"
    found = {module: known.clocks for module, known in facts().items() if known.clocks}
    assert found == DATED


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("heed.nn.heads", "heed.core.errors", True),
        ("heed.nn.heads", "torch.nn", True),
        ("heed.nn.heads", "heed.nn.contract", True),
        ("heed.run", "heed.recipe", True),
        ("heed", "heed.cli.main", True),
        ("heed.nn.heads", "heed.text.readers", False),
        ("heed.nn.heads", "heed.models.transformer", False),
        ("heed.text.readers", "torch", False),
        ("heed.text.readers", "torch.utils.data", False),
        ("heed.text.readers", "torchless", True),
        ("heed.compress.coder", "heed.inspect.page", False),
        ("heed.serve.http", "heed.inspect.page", True),
        ("heed.decoding.beam", "heed.models.transformer", False),
        ("heed.recipe", "heed.training.config", True),
        ("heed.training.trainer", "heed.recipe", False),
        ("heed.core.files", "heed", False),
        ("heed.core.files", "heed.misc", False),
    ],
)
def test_the_table_allows_and_forbids_imports(importer: str, imported: str, allowed: bool) -> None:
    assert (objection(importer, imported) is None) == allowed


def test_all_forms_of_imports_are_found(tmp_path: Path) -> None:
    lines = ["import a.b as c", "def f():", "    from heed import core", "    from .errors import X"]
    file = tmp_path / "example.py"
    file.write_text("\n".join(lines), encoding="utf-8")
    assert facts_of("heed.core.example", file).imports == [(1, "a.b"), (3, "heed.core"), (4, "heed.core.errors")]


@pytest.mark.parametrize(
    "program",
    [
        "import heed",
        "import heed.cli.main",
        "import sys, heed.cli.main; sys.argv = ['heed', '--help']; heed.cli.main.main()",
        "import heed.documents.isolated",
    ],
    ids=["heed", "heed.cli.main", "heed --help", "heed.documents.isolated"],
)
def test_heavy_packages_are_not_imported_for_help_or_documents(program: str) -> None:
    report = f"import atexit, sys; atexit.register(lambda: print('loaded:', *set(sys.modules) & set({HEAVY})))\n"
    result = subprocess.run([sys.executable, "-c", report + program], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1].split() == ["loaded:"]


NAMED_ELSEWHERE = {
    "heed.cli.demo": ({"transformer", "translation"}, "trains one translator"),
    "heed.cli.translate": ({"translation"}, "a column of its results is called `translation`"),
    "heed.cli.train": ({"encoder"}, "`encoder` is a part of a model in --init-parts"),
    "heed.cli.output": ({"translation"}, "a key of its JSON is `translation`"),
    "heed.documents.tables": ({"translation"}, "a heading may be `translation`"),
    "heed.export.arpa": ({"bigram", "ngram"}, "writes and reads one kind of model"),
    "heed.export.gpt2": ({"gpt"}, "writes and reads one kind of model"),
    "heed.export.bert": ({"encoder"}, "writes and reads one kind of model"),
    "heed.export.marian": ({"encoder", "transformer"}, "writes and reads one kind of model"),
    "heed.export.formats": ({"translation"}, "a pipeline of Hugging Face is called `translation`"),
    "heed.planner": ({"encoder"}, "`encoder` is a part of a model in --init-parts"),
    "heed.transfer": ({"encoder"}, "`encoder` is a part of a model in --init-parts"),
    "heed.export.word2vec": ({"skip_gram"}, "writes and reads one kind of model"),
    "heed.nn.characters": ({"cnn"}, "a BiLSTM or a CNN over characters, which are parts of readers"),
    "heed.training.config": ({"linear"}, "a schedule is called `linear`"),
    "heed.training.schedules": ({"linear"}, "a schedule is called `linear`"),
    "heed.inspect.inspection": ({"language-model", "translation"}, "the kind of an inspection, in its JSON"),
    "heed.statistical.compressors": ({"lz78"}, "the name of a compressor"),
}
"""Modules outside `tasks` and `models` with strings that equal the key of a task or of a model: which, and why."""


def test_no_module_outside_names_a_task_or_a_kind_of_model() -> None:
    """Code that treats a task or a model differently asks it for a fact, and never compares its name."""
    keys = {*TASKS, *MODELS}
    inside_tasks = ("tasks", "tasks.member", "models")
    outside = {module: known.strings & keys for module, known in facts().items() if top(module) not in inside_tasks}
    named = {module: strings for module, strings in outside.items() if strings}
    assert named == {module: strings for module, (strings, _) in NAMED_ELSEWHERE.items()}


JSON_READERS = {"heed.core.json_text": "the one way", "heed.serve.bodies": "limits the members of objects as it reads"}


def test_json_is_read_by_the_function_whose_errors_are_known() -> None:
    """`json.loads` raises RecursionError, too, which a reader of files from elsewhere must not forget."""
    readers = {module for module, known in facts().items() if known.reads_json}
    assert readers == JSON_READERS.keys()
