"""A contract's assets -> files of its task: downloaded or taken from the cache, checked, staged, remembered."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from skill2env.create.host import Grounded
from skill2env.grounding.cache import AssetCache, Kept
from skill2env.grounding.download import Downloader, DownloadLimits
from skill2env.grounding.faults import AssetFault, NotHad
from skill2env.grounding.licences import MAX_TEXT_BYTES, Ends, judge
from skill2env.grounding.origins import undeclared
from skill2env.hub.policy import LicencePolicy
from skill2env.records import (
    SHA256_PREFIX,
    Asset,
    Finding,
    GateOutcome,
    GateResult,
    Reason,
    Severity,
    Skill,
    StagedAsset,
    TaskContract,
    Verdict,
    VerdictStatus,
    digest_bytes,
)
from skill2env.sandbox.egress import Egress
from skill2env.store.files import storage, write_bytes

GATE = "assets"
_ALL = 4
"""All downloads of one task may take as long as so many of the longest."""
NO_RULES = Egress.public()
_OF_REASON = {
    Reason.ASSET_CHANGED: (AssetFault.DIGEST, AssetFault.DIFFERS),
    Reason.ASSET_REFUSED: (AssetFault.ADDRESS, AssetFault.LICENCE, AssetFault.TOO_LARGE),
}
_REASONS = {fault: reason for reason, faults in _OF_REASON.items() for fault in faults}
"""What is left out means that the file cannot be had."""


def reason_of(fault: AssetFault) -> Reason:
    """The reason for which a contract with such an asset is rejected."""
    return _REASONS.get(fault, Reason.ASSET_UNAVAILABLE)


def _no_advice(_: str) -> str:
    return ""


@dataclass(frozen=True)
class Grounder:
    """Grounds contracts under the settings of one run."""

    cache: AssetCache
    notices: Path
    """Folder of the run that keeps licence texts by digest, until the task is published."""
    rules: Egress = NO_RULES
    limits: DownloadLimits = field(default_factory=DownloadLimits)
    max_total_bytes: int = 48 * 2**20
    """Of all assets of one task together."""
    policy: LicencePolicy = field(default_factory=LicencePolicy)
    offline: bool = False
    """Only the cache is asked."""
    stop: threading.Event = field(default_factory=threading.Event)
    """Set by whoever wants downloads to end."""
    mend: Callable[[str], str] = _no_advice
    """Code of a finding -> one sentence for the author."""

    def ground(self, task_dir: Path, contract: TaskContract, skill: Skill) -> Grounded:
        """Put the assets of a contract into its task, and look where the other files come from.

        Args:
            task_dir: the task's folder, before its seal.
            contract: as the author wrote it.
            skill: whose own files need no declaration.

        Returns:
            The verdict with one gate, and what was staged; on a rejection nothing more is staged.

        Raises:
            InfraError: boundary ``network`` or ``storage``; also when `stop` is set while something is downloaded.
        """
        staged: list[StagedAsset] = []
        findings: list[Finding] = []
        end = time.monotonic() + _ALL * self.limits.timeout_sec
        for asset in contract.assets:
            if not asset.paths:
                continue
            try:
                staged.append(self._staged(asset, task_dir, staged, end))
            except NotHad as fault:
                findings.append(self._finding(asset, fault))
        if not findings:
            places = {path for item in staged for path in item.asset.paths}
            own = frozenset(item.sha256 for item in skill.files if item.sha256)
            findings += undeclared(task_dir, contract, own, places)
        return _grounded(findings, staged)

    def _staged(self, asset: Asset, task_dir: Path, before: list[StagedAsset], end: float) -> StagedAsset:
        """Have, check and stage one asset."""
        wanted = asset.sha256 and SHA256_PREFIX + asset.sha256.removeprefix(SHA256_PREFIX)
        room = self.max_total_bytes - sum(item.size * len(item.asset.paths) for item in before)
        text, notice, text_at = self._licence_text(asset, end)
        judge(asset, text, self.policy)  # before the file is asked for
        kept = self._had(asset.url, asset.revision, wanted, self.limits.max_bytes, end)
        licence = judge(asset, text, self.policy, Ends(text_at, kept.address))
        if wanted and kept.sha256 != wanted:
            raise NotHad(AssetFault.DIGEST, f"{asset.url} has the digest {kept.sha256}, not {wanted}")
        if kept.size * len(asset.paths) > room:
            message = f"with {asset.url} the assets exceed {self.max_total_bytes:,} bytes together"
            raise NotHad(AssetFault.TOO_LARGE, message)
        with storage("reading", self.cache.root):
            data = self.cache.path(kept.sha256).read_bytes()
        for path in asset.paths:
            self._put(task_dir / path, data, asset)
        if text is not None:
            with storage("making", self.notices):
                self.notices.mkdir(parents=True, exist_ok=True)
            write_bytes(self.notices / notice.removeprefix(SHA256_PREFIX), text)
        return StagedAsset(
            asset=asset,
            sha256=kept.sha256,
            size=kept.size,
            address=kept.address,
            licence=licence,
            notice=notice,
        )

    def _licence_text(self, asset: Asset, end: float) -> tuple[bytes | None, str, str]:
        """The text that proves the terms, its digest, and where it was found in the end."""
        if not asset.licence_url:
            return None, "", ""
        kept = self._had(asset.licence_url, asset.revision, "", MAX_TEXT_BYTES, end)
        with storage("reading", self.cache.root):
            return self.cache.path(kept.sha256).read_bytes(), kept.sha256, kept.address

    def _had(self, url: str, revision: str, sha256: str, limit: int, end: float) -> Kept:
        kept = self.cache.find(url, revision, sha256)
        if kept is not None:
            if kept.size > limit:
                raise NotHad(AssetFault.TOO_LARGE, f"{url} has more than {limit:,} bytes")
            return kept
        if self.offline:
            message = f"{url} is not in the cache, and assets.download is off"
            raise NotHad(AssetFault.OFFLINE, message)
        left = end - time.monotonic()
        if left <= 0:
            raise NotHad(AssetFault.SLOW, f"{url}: the time for all assets of one task is over")
        limits = replace(self.limits, timeout_sec=min(self.limits.timeout_sec, left))
        downloader = Downloader(self.rules, limits, self.stop)
        return self.cache.keep(url, revision, lambda stream: downloader.fetch(url, stream, max_bytes=limit))

    def _put(self, target: Path, data: bytes, asset: Asset) -> None:
        if target.is_dir() or any(above.exists() and not above.is_dir() for above in target.parents):
            message = f"{asset.url}: the author has other files in the way of {target.name}"
            raise NotHad(AssetFault.DIFFERS, message)
        with storage("staging", target):
            if target.is_file() and digest_bytes(target.read_bytes()) != digest_bytes(data):
                message = f"{asset.url}: the author's own file in its place has other bytes"
                raise NotHad(AssetFault.DIFFERS, message)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            target.chmod(0o644)

    def _finding(self, asset: Asset, fault: NotHad) -> Finding:
        return Finding(
            code=fault.fault.value,
            severity=Severity.ERROR,
            message=fault.message + (f" (fallback: {asset.fallback})" if asset.fallback else ""),
            where=f"contract.json: {asset.what}"[:200],
            mend=self.mend(fault.fault.value),
        )


def _grounded(findings: list[Finding], staged: list[StagedAsset]) -> Grounded:
    worst = next((item for item in findings if item.severity is Severity.ERROR), None)
    reason = reason_of(AssetFault(worst.code)) if worst else None
    values: dict[str, float | int | str | bool | None] = {
        f"asset-{number}": item.sha256 for number, item in enumerate(staged)
    }
    gate = GateResult(
        gate=GATE,
        outcome=GateOutcome.REJECTED if worst else GateOutcome.PASSED,
        reason=reason,
        message=worst.message if worst else "",
        findings=tuple(findings),
        values=values,
    )
    if worst is None:
        return Grounded(Verdict(status=VerdictStatus.ACCEPTED, gates=(gate,)), tuple(staged))
    message = f"{GATE}: {worst.message}"
    return Grounded(Verdict(status=VerdictStatus.REJECTED, reason=reason, message=message, gates=(gate,)), ())
