"""Commands: exit codes, signals, output, variables, users, folders, time."""

import asyncio
import contextlib
import time
from collections.abc import Callable

import pytest

from skill2env.sandbox.box_environment import BoxEnvironment
from skill2env.sandbox.identity import current_identity

AGENT = (
    "FROM debian-bookworm\nRUN useradd --create-home agent && mkdir /app && chown agent /app\nWORKDIR /app\n"
)
Use = Callable[..., None]


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("true", 0),
        ("exit 3", 3),
        ("exit 255", 255),
        ("exit 126", 126),
        ("/no/such/program", 127),
        ("kill -9 $$", 137),
        ("kill -TERM $$", 143),
        ("bash -c 'kill -SEGV $$'", 139),
    ],
)
def test_exit_codes(use: Use, command: str, code: int) -> None:
    async def work(env: BoxEnvironment) -> None:
        assert (await env.exec(command)).return_code == code

    use(work)


def test_output(use: Use) -> None:
    async def work(env: BoxEnvironment) -> None:
        done = await env.exec("echo out; echo err >&2; printf '\\xff\\n\\0x'; printf 'ünï ✓\\n'")
        assert done.stdout == "out\n\ufffd\n\0xünï ✓\n"
        assert done.stderr == "err\n"
        flood = await env.exec("yes | head -c 40000000")
        assert flood.return_code == 0
        assert len(flood.stdout or "") == 16 * 2**20
        assert (await env.exec("cat; echo end")).stdout == "end\n"

    use(work)


def test_a_child_in_the_background_does_not_hold_the_command(use: Use) -> None:
    async def work(env: BoxEnvironment) -> None:
        began = time.monotonic()
        done = await env.exec("sleep 60 & echo started")
        assert done.stdout == "started\n"
        assert time.monotonic() - began < 15
        assert (await env.exec("pgrep -f '[s]leep 60'")).return_code == 0

    use(work)


def test_variables(use: Use) -> None:
    async def work(env: BoxEnvironment) -> None:
        given = {"A": "two\nlines", "B": "quote' \" $HOME", "PATH_LIKE": "ü", "EMPTY": "", "DOCKER_HOST": "x"}
        done = await env.exec(
            'printf "%s|" "$A" "$B" "$PATH_LIKE" "${EMPTY-unset}" "$DOCKER_HOST" "$IMAGE" "$BOTH" "$TASK"',
            env=given,
        )
        assert done.stdout == "two\nlines|quote' \" $HOME|ü||x|image|task|task|"
        assert (await env.exec("echo $HOME; type python3")).stdout == "/root\npython3 is /usr/bin/python3\n"

    use(
        work,
        dockerfile="FROM debian-bookworm\nENV IMAGE=image BOTH=image\n",
        env={"BOTH": "task", "TASK": "task"},
    )


def test_users_and_folders(use: Use, kind: str) -> None:
    if kind == "namespace" and not current_identity().several_users:
        pytest.skip("the single-uid tier has one user")

    async def work(env: BoxEnvironment) -> None:
        assert (await env.exec("whoami; pwd")).stdout == "root\n/app\n"
        done = await env.exec("id -un; id -u; echo $HOME; touch /app/mine; touch /root/x", user="agent")
        assert (done.stdout or "").split() == ["agent", "1000", "/home/agent"]
        assert done.return_code == 1
        assert (await env.exec("id -u", user=1000)).stdout == "1000\n"
        assert (await env.exec("pwd", cwd="/var/tmp")).stdout == "/var/tmp\n"
        assert (await env.exec("true", user="nobody-by-that-name")).return_code != 0
        assert (await env.exec("true", cwd="/no/such/folder")).return_code != 0

    use(work, dockerfile=AGENT)


def test_user_and_workdir_of_the_image(use: Use, kind: str) -> None:
    if kind == "namespace" and not current_identity().several_users:
        pytest.skip("the single-uid tier has one user")

    async def work(env: BoxEnvironment) -> None:
        assert (await env.exec("whoami; pwd")).stdout == "agent\n/app\n"
        assert (await env.exec("whoami", user="root")).stdout == "root\n"

    use(work, dockerfile=AGENT + "USER agent\n")


def test_a_workdir_that_the_image_lacks(use: Use) -> None:
    async def work(env: BoxEnvironment) -> None:
        assert (await env.exec("pwd")).stdout == "/made/for it\n"

    use(work, workdir="/made/for it")


@pytest.mark.parametrize("user", ["root", "nobody"])
def test_a_time_limit_kills_everything_that_was_started(use: Use, user: str, kind: str) -> None:
    if kind == "namespace" and user != "root" and not current_identity().several_users:
        pytest.skip("the single-uid tier has one user")

    async def work(env: BoxEnvironment) -> None:
        began = time.monotonic()
        with pytest.raises(RuntimeError, match="timed out after 1 seconds"):
            await env.exec(
                "trap '' TERM INT HUP; sleep 7001 & setsid sleep 7002 & (sleep 7003 &); sleep 7004",
                timeout_sec=1,
                user=user,
            )
        assert time.monotonic() - began < 15
        assert (await env.exec("pgrep -fa '[s]leep 70'")).stdout == ""

    use(work)


def test_cancelling_kills(use: Use) -> None:
    async def work(env: BoxEnvironment) -> None:
        task = asyncio.create_task(env.exec("sleep 7101 & sleep 7102"))
        for _ in range(100):
            await asyncio.sleep(0.1)
            if (await env.exec("pgrep -f '[s]leep 710'")).stdout:
                break
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for _ in range(100):
            left = await env.exec("pgrep -f '[s]leep 710'")
            if not left.stdout:
                return
            await asyncio.sleep(0.1)
        raise AssertionError(left.stdout)

    use(work)


@pytest.mark.parametrize(
    "command", ["kill -9 -1", "kill -9 1", "kill -TERM 1; kill -INT 1", "kill -STOP -1 & kill -9 $$"]
)
def test_a_command_that_kills_all_ends_nothing_but_itself(use: Use, command: str) -> None:
    async def work(env: BoxEnvironment) -> None:
        with contextlib.suppress(RuntimeError):  # what is stopped and not killed may take all of its time
            await env.exec(command, timeout_sec=5)
        assert (await env.exec("echo still here")).stdout == "still here\n"

    use(work)


def test_many_at_once(use: Use) -> None:
    async def work(env: BoxEnvironment) -> None:
        done = await asyncio.gather(*(env.exec(f"sleep 0.2; echo {n}") for n in range(12)))
        assert [one.stdout for one in done] == [f"{n}\n" for n in range(12)]

    use(work)


def test_small_commands_of_a_trial_end_as_the_programs_do(use: Callable[..., None]) -> None:
    """Harbor makes scripts executable and removes old rewards; the namespace sandbox does that without a program."""

    async def work(env: BoxEnvironment) -> None:
        async def ends(command: str) -> tuple[int, bool]:
            done = await env.exec(command, user="root")
            return done.return_code, bool(done.stderr)

        made = await env.exec(
            "mkdir -p /w/folder && cd /w && touch file other old; chmod 4640 file; chmod 0 other; ln -s other link",
            user="root",
        )
        assert made.return_code == 0
        assert await ends("chmod +x /w/file") == (0, False)
        assert await ends("chmod +x /w/link") == (0, False)
        assert await ends("chmod +x /w/missing") == (1, True)
        modes = await env.exec("stat -c '%a %F' /w/file /w/other /w/link", user="root")
        assert modes.stdout == "4751 regular empty file\n111 regular empty file\n777 symbolic link\n"
        assert await ends("rm -f -- /w/old /w/missing /w/link") == (0, False)
        assert await ends("rm -f -- /w/file /w/folder /w/other") == (1, True)
        left = await env.exec("ls /w", user="root")
        assert left.stdout == "folder\n"

    use(work)
