import importlib.util
import json
import sys
import time
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill2env.domains import LEAST_WORDS, DomainClassifier, features, load_classifier
from skill2env.ingest import load_skill
from skill2env.records import Domain, meaning

MOST_BYTES = 400_000
CASES = {
    Domain.SOFTWARE: (
        "pytest-helper",
        "Write unit tests with pytest fixtures and refactor modules of a Python package.",
    ),
    Domain.AI_SCIENCE: (
        "lora-tuning",
        "Fine-tune a language model with PyTorch and LoRA, train and evaluate checkpoints.",
    ),
    Domain.BUSINESS: (
        "month-end",
        "Prepare journal entries, accruals and reconciliation for the month-end close.",
    ),
    Domain.MARKETING: (
        "campaign-brief",
        "Plan a marketing campaign with SEO keywords, ads and email sequences for leads.",
    ),
    Domain.RESEARCH: (
        "literature-review",
        "Systematic literature review: search, citations and scientific manuscripts.",
    ),
    Domain.DOCUMENTS: (
        "pdf-tools",
        "Convert PDF, Word and Markdown documents, and edit video and audio with ffmpeg.",
    ),
    Domain.INFRASTRUCTURE: (
        "gke-deploy",
        "Deploy to Kubernetes on Google Cloud, configure clusters and monitoring.",
    ),
    Domain.PRODUCT: (
        "prd-writer",
        "Write product requirements and user stories, prioritize features from interviews.",
    ),
    Domain.DESIGN: (
        "ui-design",
        "Design system with color palette, typography and accessible UI components in Figma.",
    ),
    Domain.DATA: (
        "sql-pipelines",
        "SQL queries and data pipelines for a warehouse; BigQuery tables and schema design.",
    ),
    Domain.PRODUCTIVITY: (
        "meeting-notes",
        "Summarize meetings, manage tasks and calendar, search Slack and Notion pages.",
    ),
    Domain.SECURITY: (
        "threat-hunting",
        "Hunt for malware and MITRE ATT&CK techniques in Windows event logs with Sigma.",
    ),
    Domain.HEALTH: (
        "discharge-summary",
        "Write clinical discharge summaries and SOAP notes with medications for a patient.",
    ),
}


@pytest.mark.parametrize("domain", list(Domain))
def test_plain_cases_of_every_domain(domain: Domain) -> None:
    name, description = CASES[domain]
    guess = load_classifier().classify(name, description, "")
    assert guess.domain == guess.likeliest == domain
    assert guess.confidence > 0.5
    reasons = load_classifier().explain(name, description, "")
    assert reasons[0].weight > 0
    assert {reason.word for reason in reasons} <= features(name, description, "").keys()


def test_meanings_and_examples_agree_with_the_vocabulary(repository: Path) -> None:
    assert len(Domain) == 13
    assert all(len(meaning(domain)) > 40 for domain in Domain)
    stated = {
        workflow["domain"]
        for path in sorted(repository.glob("examples/**/plan.json"))
        for workflow in json.loads(path.read_text(encoding="utf-8"))["workflows"]
    }
    skills = [load_skill(path.parent) for path in sorted(repository.glob("examples/**/SKILL.md"))]
    stated |= {
        str(skill.front_matter["metadata"]["domain"]) for skill in skills if "metadata" in skill.front_matter
    }
    assert stated
    assert stated <= set(Domain)


def test_nothing_is_guessed_from_nothing() -> None:
    for words in (("", "", ""), ("x", "qqq zzz", ""), ("日本語", "これはスキルです。", "説明" * 500)):
        guess = load_classifier().classify(*words)
        assert guess.domain == ""
        assert guess.likeliest in set(Domain)
    few = " ".join(list(CASES[Domain.SECURITY][1].split())[:2])
    assert len(features("", few, "")) < LEAST_WORDS
    assert load_classifier().classify("", few, "").domain == ""


@given(st.text(max_size=60), st.text(max_size=200), st.text(max_size=200))
def test_any_text_is_judged(name: str, description: str, body: str) -> None:
    guess = load_classifier().classify(name, description, body)
    assert guess.likeliest in set(Domain)
    assert guess.domain in {"", guess.likeliest}
    assert 1 / 13 - 1e-3 <= guess.confidence <= 1


def test_the_weights_are_small_text_and_every_word_is_used(repository: Path) -> None:
    path = repository / "src/skill2env/domain_weights.tsv"
    assert path.stat().st_size < MOST_BYTES
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if line[0] != "#"]
    assert rows[0][2:] == [domain.value for domain in Domain]
    assert {len(row) for row in rows} == {15}
    assert len({row[0] for row in rows[1:]}) == len(rows) - 1


def test_wrong_weights_are_refused() -> None:
    for text in (
        "",
        "# temperature 1\n",
        "word\trarity\n",
        "# temperature 1\n# unsure 0.5\nword\trarity\tgardening\n",
    ):
        with pytest.raises(ValueError, match=r"weights|Domain"):
            DomainClassifier(text)


def test_seeds(repository: Path) -> None:
    seeds = tomllib.loads((repository / "scripts/domain_seeds.toml").read_text(encoding="utf-8"))
    assert list(seeds) == [domain.value for domain in Domain]
    assert min(len(text.strip().splitlines()) for text in seeds.values()) >= 20


def test_it_is_fast() -> None:
    body = " ".join(text for _, text in CASES.values()) * 3
    classifier = load_classifier()
    begun = time.process_time()
    for _ in range(300):
        classifier.classify("a-skill", "Does what it says.", body)
    assert time.process_time() - begun < 1.0, "300 skills; 2,000 a second are wanted on an idle machine"


# ------------------------------------------------------------------------------------------------ training


@pytest.fixture(scope="module")
def trainer(repository: Path) -> ModuleType:
    path = repository / "scripts/train_domains.py"
    specification = importlib.util.spec_from_file_location("train_domains", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["train_domains"] = module
    specification.loader.exec_module(module)
    return module


def test_training_on_the_seeds_alone_tells_them_apart_twice_the_same(trainer: ModuleType) -> None:
    seeds = trainer.seeds()
    texts = [trainer.write(trainer.train(seeds, 400), 1.0, 0.2) for _ in range(2)]
    assert texts[0] == texts[1]
    classifier = DomainClassifier(texts[0])
    right = sum(
        classifier.classify("", line, "").likeliest == domain
        for domain, text in tomllib.loads(
            (trainer.ROOT / "scripts/domain_seeds.toml").read_text("utf-8")
        ).items()
        for line in text.strip().splitlines()
    )
    assert right > 0.85 * len(seeds.bags)
