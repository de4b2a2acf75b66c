"""A program that judges texts: one JSON object a line in, one number a line out (docs/judges.md)."""

from __future__ import annotations

import json
import math
import subprocess
import threading
from typing import Optional

from ..errors import InputError

__all__ = ["Program"]

MOST_REMEMBERED = 1 << 20


class Program:
    """A judge as ``deeptail.judge`` names it. It runs as long as this lives; a text is asked about once."""

    def __init__(self, command: str) -> None:
        if not command:
            raise InputError("the judge's command is empty")
        self._command = command
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._known: dict[str, float] = {}

    def __call__(self, prompts: list[str], continuations: list[str]) -> list[float]:
        lines = [json.dumps({"prompt": p, "continuation": c}) for p, c in zip(prompts, continuations)]
        if len(self._known) + len(lines) > MOST_REMEMBERED:
            self._known.clear()
        asked = [line for line in dict.fromkeys(lines) if line not in self._known]
        if asked:
            self._known.update(zip(asked, self._ask(asked)))
        return [self._known[line] for line in lines]

    def _ask(self, lines: list[str]) -> list[float]:
        if self._process is None:
            self._process = subprocess.Popen(self._command, shell=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        writer = threading.Thread(target=self._write, args=(process, lines), daemon=True)
        writer.start()
        answers = [self._number(process.stdout.readline()) for _ in lines]
        writer.join()
        return answers

    @staticmethod
    def _write(process: subprocess.Popen[bytes], lines: list[str]) -> None:
        assert process.stdin is not None
        try:
            process.stdin.write(("\n".join(lines) + "\n").encode())
            process.stdin.flush()
        except (BrokenPipeError, ValueError):  # whoever reads is told that there is no answer
            pass

    def _number(self, line: bytes) -> float:
        text = line.decode("utf-8", "replace").strip()
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not math.isfinite(found):
            self.close()
            said = f'wrote "{text[:40]}"' if line else "ended"
            raise InputError(f"{self._command}: {said}; expected one finite number a line")
        return found

    def close(self) -> None:
        """Ends the program."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            try:
                process.stdin.close()
            except BrokenPipeError:
                pass
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def __del__(self) -> None:
        self.close()
