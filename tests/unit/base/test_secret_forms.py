from __future__ import annotations

import base64
import html
import json
import shlex
from collections.abc import Callable
from itertools import product
from urllib.parse import quote, quote_plus

import pytest

from openstack_prep.base import secret_forms, shell
from openstack_prep.base.errors import Mistake
from openstack_prep.base.secret import HIDDEN


def test_secrets_are_found_in_whatever_notation() -> None:
    secret = 'the "secret" key'
    forms = [secret, '{"a": "the \\"secret\\" key"}', "x=the%20%22secret%22%20key"]
    forms += [base64.b64encode(b"x" * pad + secret.encode() + b"yz").decode() for pad in range(3)]
    assert [form for form in forms if not secret_forms.contains(form, [secret])] == []
    assert not secret_forms.contains("the secret key", [secret, ""])
    assert secret_forms.hide("a \udce9b c", ["\udce9b"]) == f"a {HIDDEN} c"  # Latin-1 in a variable


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        ("pa'ss<&>wd", "Invalid: pa'ss&lt;&amp;&gt;wd"),
        ("pa'ss<&>wd", "Invalid: pa&#x27;ss&lt;&amp;&gt;wd"),
        ("pa'ss\"word", f"Invalid: {'pa' + chr(39) + 'ss' + chr(34) + 'word'!r}"),
        ("pa'ssword", "Invalid: {'a': 'pa\\'ssword', 'b': 1}"),
        ("one\ntwo words\n", f"Invalid: {'one' + chr(10) + 'two words' + chr(10)!r}"),
        ("one\ntwo words\n", "Invalid: one two words"),
        ('{"auths": {"quay.io": {"auth": "Zm9vOmJhcg=="}}}', "Invalid: {'quay.io': {'auth': 'Zm9vOmJhcg=='}}"),
        ('["first-secret", "second-secret"]', "Invalid: second-secret"),
        ('{"pin": 8273645501, "short": "83615"}', "Invalid: 8273645501 is not a boolean"),
        ('{"pin": 8273645501, "short": "83615"}', "Invalid: {'pin': 8273645501, 'short': '83615'}"),
        ("first-secret, second-secret", "Invalid: 'second-secret'"),
    ],
)
def test_stars_stand_for_a_secret_in_the_forms_of_services(secret: str, text: str) -> None:
    hidden = secret_forms.hide(text, [secret])
    assert HIDDEN in hidden
    assert [word for word in ("wd", "word", "words", "Zm9v", "second") if word in hidden] == []


NOTATIONS: tuple[Callable[[str], str], ...] = (
    json.dumps,
    lambda text: json.dumps(text, ensure_ascii=False).replace("<", "\\u003c").replace("&", "\\u0026"),  # Go
    repr,
    lambda text: repr(text.encode()),
    html.escape,
    lambda text: html.escape(text).replace("&#x27;", "&#39;").replace("&quot;", "&#34;"),  # markupsafe
    quote,
    lambda text: quote_plus(text).lower(),
)


@pytest.mark.parametrize("secret", ["horse \"q' \\ é%40&<b>=/ horse", "horse\n\U0001f600+horse: é\n", "horse"])
def test_stars_stand_for_a_secret_in_any_two_notations(secret: str) -> None:
    for first, second in product(NOTATIONS, repeat=2):
        assert "horse" not in secret_forms.hide(f"a {second(first(secret))} z", [secret])


@pytest.mark.parametrize("secret", ["", "{", '{"a": 1}', "[1, null]", "[" * 5000, '{"a": "b"}'])
def test_other_texts_stay(secret: str) -> None:
    assert secret_forms.hide("Invalid: abc", [secret]) == "Invalid: abc"


@pytest.mark.parametrize("word", ["a:b@c d", "it's:me@h; x", "a b:c@@d:e@f", "@", "a:b@c", "$x:y@z", "plain word", ""])
def test_a_printed_command_stays(word: str) -> None:
    command = shell.join(["openstack", "--os-cloud", word, word])
    assert shlex.split(command) == ["openstack", "--os-cloud", word, word]
    assert Mistake("spec.yaml", "what", command).fix == command


LONG = "clouds:\n  prod:\n    auth:\n" + '      name: "hunter2"\n' * 80


@pytest.mark.parametrize(
    "form", [repr, json.dumps, lambda text: repr({"a": text}), lambda text: json.dumps(repr(text))]
)
@pytest.mark.parametrize("is_on_one_line", [False, True])
def test_long_secrets_are_found_as_services_quote_them(form: Callable[[str], str], is_on_one_line: bool) -> None:
    text = f"Invalid: {form(LONG)}"
    text = " ".join(text.split()) if is_on_one_line else text
    assert "hunter2" not in secret_forms.hide(text, [LONG])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Value: pa'ss w", f"Value: {HIDDEN}"),
        ("Value: \"pa'ss wo", f'Value: "{HIDDEN}'),
        ("Value: {'a': 'first-sec", f"Value: {{'a': '{HIDDEN}"),
        ("the end of a pa", "the end of a pa"),
        ("pa'ss words; see above", "pa'ss words; see above"),
    ],
)
def test_the_beginning_of_a_secret_at_the_end_of_a_text_is_hidden(text: str, shown: str) -> None:
    assert secret_forms.hide(text, ["pa'ss word\nand more", "x, first-secret"]) == shown


def test_secrets_by_the_names_of_fields() -> None:
    data = {
        "teams": [{"name": "red", "db_password": "a"}, {"name": "blue", "tokens": ["b", "c"], "key": "pair"}],
        "secret": {"of": "d"},
        "token_ttl": "1h",
        "password": 5,
    }
    assert list(secret_forms.list_named_secrets(data)) == ["a", "b", "c", "d"]
    assert list(secret_forms.list_named_secrets("e", "admin_password")) == ["e"]
    for name in ("private_key", "secretKey", "api-key", "dbPassword", "pw", "s3_keys", "AGENT_TOKEN"):
        assert list(secret_forms.list_named_secrets("e", name)) == ["e"]
    for name in ("key", "public_key", "bypass", "passwordless", "ssh_key", "key_name"):
        assert not list(secret_forms.list_named_secrets("e", name))
