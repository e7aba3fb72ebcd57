"""Variables in Dockerfile words (``$NAME``, ``${NAME}``, ``${NAME:-word}``), with the quoting rules of docker build."""

from collections.abc import Mapping

from skill2env.errors import Skill2EnvError


class ExpansionError(Skill2EnvError):
    """The word is malformed, asks for an unset variable with ``:?``, or uses a form that is not supported."""


class _Lexer:
    def __init__(self, text: str, values: Mapping[str, str], *, quotes: bool) -> None:
        self.text, self.values, self.quotes = text, values, quotes
        self.at = 0

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self) -> str:
        char = self.peek()
        self.at += 1
        return char

    def until(self, stops: str) -> str:
        """Expand up to one of `stops` (not consumed) or, when there is none to wait for, to the end."""
        out: list[str] = []
        while (char := self.peek()) and char not in stops:
            match self.take():
                case "'" if self.quotes:
                    out.append(self.single())
                case '"' if self.quotes:
                    out.append(self.double())
                case "$":
                    out.append(self.dollar())
                case "\\" if self.quotes:
                    out.append(self.take() or "\\")
                case "\\" if self.peek() == "$":
                    out.append(self.take())
                case other:
                    out.append(other)
        return "".join(out)

    def single(self) -> str:
        end = self.text.find("'", self.at)
        if end < 0:
            raise ExpansionError(f"a single quote is never closed in: {self.text}")
        body, self.at = self.text[self.at : end], end + 1
        return body

    def double(self) -> str:
        out: list[str] = []
        while True:
            match self.take():
                case "":
                    raise ExpansionError(f"a double quote is never closed in: {self.text}")
                case '"':
                    return "".join(out)
                case "$":
                    out.append(self.dollar())
                case "\\":
                    after = self.take()
                    out.append(after if after in ('"', "$", "\\") else "\\" + after)
                case other:
                    out.append(other)

    def dollar(self) -> str:
        if self.peek() == "{":
            self.at += 1
            return self.braced()
        name = self.name()
        return self.values.get(name, "") if name else "$"

    def name(self) -> str:
        start = self.at
        if self.peek().isdigit() or self.peek() in ("@", "*", "#"):  # one character, as in a shell
            self.at += 1
            return self.text[start : self.at]
        while (char := self.peek()) and (char == "_" or (char.isascii() and char.isalnum())):
            self.at += 1
        return self.text[start : self.at]

    def braced(self) -> str:
        name = self.name()
        if not name:
            raise ExpansionError(f"bad substitution in: {self.text}")
        if self.peek() == "}":
            self.at += 1
            return self.values.get(name, "")
        colon = self.peek() == ":"
        self.at += colon
        operator = self.take()
        if operator not in ("-", "+", "?") or not operator:
            raise ExpansionError(f"unsupported modifier in ${{{name}...}}: {self.text}")
        word = self.until("}")
        if self.take() != "}":
            raise ExpansionError(f"a brace is never closed in: {self.text}")
        usable = bool(self.values.get(name)) if colon else name in self.values
        if operator == "-":
            return self.values[name] if usable else word
        if operator == "+":
            return word if usable else ""
        if not usable:
            raise ExpansionError(f"{name}: {word or 'not set'}")
        return self.values[name]


def expand(word: str, values: Mapping[str, str]) -> str:
    """Expand one word: variables replaced, quotes removed, escapes resolved. An unset variable is empty.

    Raises:
        ExpansionError: see the class.
    """
    return _Lexer(word, values, quotes=True).until("")


def expand_body(text: str, values: Mapping[str, str]) -> str:
    """Expand the body of an unquoted heredoc: variables replaced, quotes kept, an escaped dollar sign is plain.

    Raises:
        ExpansionError: see the class.
    """
    return _Lexer(text, values, quotes=False).until("")
