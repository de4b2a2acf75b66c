"""Runs notebooks and compares what they print with what they hold. No Jupyter is needed.

    python3 -m tests.python.notebooks [--update] examples/notebooks/01_first_estimate.ipynb ...

Code cells run one after another in one namespace. What a cell prints, and the repr of its last expression, is compared
to the letter; HTML and pictures are not. --update writes them into the notebook, HTML included.
"""

import ast
import contextlib
import io
import json
import pathlib
import sys
import warnings

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "notebooks"


def run_cell(source, names):
    """What the cell printed, and the value of its last expression (None where there is none)."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    return printed.getvalue(), value


def stored(cell):
    """The text that a cell holds: (printed, shown)."""
    printed = shown = ""
    for output in cell["outputs"]:
        if output["output_type"] == "stream":
            printed += "".join(output["text"])
        elif output["output_type"] == "execute_result":
            shown += "".join(output["data"].get("text/plain", ""))
    return printed, shown


def outputs_of(printed, value, number):
    found = []
    if printed:
        found.append({"name": "stdout", "output_type": "stream", "text": printed.splitlines(keepends=True)})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_().splitlines(keepends=True)
        found.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return found


def run(path, update=False):
    """Differences, one sentence each."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    names, wrong, number = {"__name__": "__main__"}, [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                continue
            number += 1
            printed, value = run_cell("".join(cell["source"]), names)
            now = (printed, "" if value is None else repr(value))
            if now != stored(cell):
                wrong.append(f"{path.name}: cell {number}: expected {stored(cell)!r}, found {now!r}")
            if update:
                cell["outputs"], cell["execution_count"] = outputs_of(printed, value, number), number
    if update:
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return wrong


def needs(path):
    """Modules that a notebook says it needs: metadata.needs."""
    return json.loads(path.read_text(encoding="utf-8"))["metadata"].get("needs", [])


def main(words):
    update = "--update" in words
    found = [sentence for name in words if name != "--update" for sentence in run(pathlib.Path(name), update)]
    if found and not update:
        print("\n".join(found), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
