"""The logs of the case, made from one seed. `files()` returns what lies in /app/evidence, byte for byte."""

import calendar
import csv
import io
import json
import random
import time

DAY0 = calendar.timegm((2026, 3, 9, 0, 0, 0)) * 1000
HOUR = 3_600_000
STEP = DAY0 + 50 * HOUR + 1_234_567  # when the gateway's clock was set
GATEWAY_OFFSETS = (-269, -3602)
PROXIES = ("10.20.0.5", "10.20.0.6")
OFFICE = "203.0.113.130"
FIRST = "Mara Jonas Ute Pavel Inga Rolf Nadia Timo Carla Erik Sven Lena Oskar Petra Yusuf Greta Hanno Milan Dora Klaus Vera Arne Selma Bruno".split()
LAST = "Krause Lehmann Novak Brandt Okafor Weiss Sattler Vogt Riemann Keller Adler Horn Pohl Zeller Demir Falk".split()


class Dice:
    """Only `Random.random` is promised to stay the same in every Python."""

    def __init__(self, seed):
        self._random = random.Random(seed).random

    def below(self, limit):
        return int(self._random() * limit)

    def pick(self, items):
        return items[self.below(len(items))]

    def chance(self, share):
        return self._random() < share


class Case:
    """Collects events in true time; `files` writes each log the way its system does."""

    def __init__(self):
        self.dice = Dice(20260309)
        self.idp, self.vpn, self.mail = [], [], []
        self.logins = 0
        self.people = []
        for number, first in enumerate(FIRST * 2):
            last = LAST[(number * 7 + number // 24) % 16]
            account = f"{first.lower()}.{last.lower()}"
            if account not in [p[0] for p in self.people]:
                aliases = [f"{first[0].lower()}{last.lower()}{number}"] + ([f"{last.lower()}-{number}"] if number % 3 == 0 else [])
                self.people.append((account, f"{last}, {first}", aliases))
        self.accounts = [person[0] for person in self.people]

    def name(self, account):
        """One of the spellings of an account."""
        aliases = next((p[2] for p in self.people if p[0] == account), [])
        word = self.dice.pick([account, account, *aliases])
        word = self.dice.pick([word, word, word.upper(), word.title()])
        return self.dice.pick([word, "CORP\\" + word, "corp\\" + word, word + "@lindau.example", word + "@Lindau.Example"])

    def session(self):
        return "s-" + "".join(self.dice.pick("0123456789abcdef") for _ in range(12))

    def event(self, t, event, user, **more):
        record = {"t": t, "event": event, "user": user, **more}
        self.idp.append(record)
        return record

    def proxied(self, client, forged=False):
        """peer and xff of a request that reached us through one or two of our proxies."""
        hops = ([self.dice.pick(["8.8.8.8", "203.0.113.130", "172.16.4.9", "unknown"])] if forged else []) + [client]
        if self.dice.chance(0.4):
            hops.append(PROXIES[1])
        return {"peer": PROXIES[0], "xff": ", ".join(hops)}

    def signin(self, t, user, where, result):
        """A sign-in; returns its session when it succeeded."""
        more = {"session": self.session()} if result == "ok" else {}
        self.event(t, "signin", user, result=result, **where, **more)
        return more.get("session")

    def login(self, t, user, src, result):
        """A login at the gateway: noted there and, unless refused locally, at the identity provider. (session, number)"""
        self.logins += 1
        number = f"#{self.logins}"  # until all logins are known
        self.vpn.append((t, f"vpnd[{(812, 1204)[t >= STEP]}]: {number} login user={user} src={src} result={result}"))
        session = self.session() if result == "ok" else ""
        if result != "local_deny":
            more = {"session": session} if session else {}
            self.event(t, "signin", user, result=result, peer="10.20.9.1", ref=number, **more)
        return session, number

    def mails(self, session, t, count, mailbox, operations):
        for _ in range(count):
            t += 20_000 + self.dice.below(900_000)
            self.mail.append((t, self.name(mailbox), self.dice.pick(operations), session))
        return t

    def ordinary_days(self):
        """What sixty people do in five days, typing errors included."""
        homes = {a: f"192.0.2.{20 + n}" for n, a in enumerate(self.accounts)}
        for account in self.accounts:
            for day in range(5):
                t = DAY0 + day * 24 * HOUR + 6 * HOUR + self.dice.below(3 * HOUR)
                if self.dice.chance(0.12):
                    continue
                where = self.proxied(OFFICE if self.dice.chance(0.7) else homes[account] + self.dice.pick(["", ":51324"]))
                if self.dice.chance(0.15):
                    self.signin(t - 9_000, self.name(account), where, "bad_password")
                session = self.signin(t, self.name(account), where, "ok")
                end = self.mails(session, t, self.dice.below(4), account, ["read", "send", "search", "rule_created"])
                if self.dice.chance(0.3):
                    child = self.session()
                    self.event(end + 70_000, "exchange", self.name(account), result="ok", session=child, parent=session, **where)
                    self.mails(child, end + 90_000, 1, account, ["read", "send"])
                if self.dice.chance(0.45):
                    result = self.dice.pick(["ok", "ok", "bad_password", "local_deny", "mfa_denied"])
                    at = t + 9 * HOUR + self.dice.below(HOUR)
                    _, number = self.login(at, self.name(account), homes[account], result)
                    if result == "ok" and self.dice.chance(0.8):
                        self.fetch(at + 200_000, number, self.dice.pick(["plans", "hr", "sales"]))

    def fetch(self, t, number, share):
        self.vpn.append((t, f"vpnd[{(812, 1204)[t >= STEP]}]: {number} fetch share={share} bytes={10_000 + self.dice.below(9_000_000)}"))

    def number_logins(self):
        """Number the gateway's logins in the order of time, anew from the moment when its service started."""
        counts, numbers, lines = [1000, 1000], {}, []
        for t, text in sorted(self.vpn):
            head, number, rest = text.split(" ", 2)
            if number not in numbers:
                counts[t >= STEP] += 1
                numbers[number] = f"V-{counts[t >= STEP]}"
            lines.append((t, f"{head} {numbers[number]} {rest}"))
        self.vpn = lines
        for record in self.idp:
            if "ref" in record:
                record["ref"] = numbers[record["ref"]]

    def lookalikes(self):
        """A hotel, a Monday morning, a stuck client, headers that lie, and six names in 3601 seconds."""
        sales = self.accounts[5:10]
        for n in range(14):
            t = DAY0 + 38 * HOUR + n * 140_000
            self.signin(t, self.name(sales[n % 5]), self.proxied("198.51.100.20"), "bad_password" if n < 9 else "ok")
        for n, account in enumerate(self.accounts[10:24]):
            self.signin(DAY0 + 6 * HOUR + n * 11_000, self.name(account), self.proxied(OFFICE), "locked")
        for n in range(160):
            self.signin(DAY0 + 27 * HOUR + n * 3_700, "svc-scan", self.proxied("198.51.100.31"), "bad_password")
        for n, account in enumerate(self.accounts[24:33]):
            where = {"peer": f"192.0.2.{180 + n}", "xff": "198.51.100.90"}
            self.signin(DAY0 + 60 * HOUR + n * 41_000, self.name(account), where, "bad_password")
        for n, account in enumerate(self.accounts[12:18]):
            t = DAY0 + 61 * HOUR + 17_500 + n * 720_000 + (1_001 if n == 5 else 0)
            self.signin(t, self.name(account), self.proxied("198.51.100.44"), "bad_password")

    def big_spray(self):
        """From an address that an employee had used before; two accounts entered, one password known."""
        carrier = "203.0.113.45"
        owner = self.signin(DAY0 + 15 * HOUR, self.name(self.accounts[30]), self.proxied(carrier), "ok")
        self.mails(owner, DAY0 + 15 * HOUR, 3, self.accounts[30], ["send", "rule_created"])
        for round_ in range(2):
            for n, account in enumerate(self.accounts[:13] + ["admin", "Backup", "b.meister"]):
                t = DAY0 + (44 + 26 * round_) * HOUR + n * 91_000 + self.dice.below(60_000)
                result = "unknown_user" if n > 12 else "locked" if n == 4 else "bad_password"
                if (round_, n) == (0, 7):
                    result = "mfa_denied"
                self.signin(t, self.name(account) if n < 13 else account, self.proxied(carrier, forged=True), result)
        t = DAY0 + 71 * HOUR
        clean = {"peer": "192.0.2.14", "xff": ""}
        root = self.signin(t, self.name(self.accounts[3]), self.proxied(carrier, forged=True), "ok")
        self.signin(t + 900_000, self.name(self.accounts[3]), self.proxied(carrier), "ok")
        first, second = self.session(), self.session()
        later = self.event(t + 2 * HOUR, "exchange", self.name(self.accounts[3]), result="ok", session=second, parent=first, peer="2001:db8:77::9")
        later["early"] = True
        self.event(t + HOUR, "exchange", self.name(self.accounts[3]), result="ok", session=first, parent=root.upper(), **clean)
        self.mails(root, t, 4, self.accounts[3], ["read", "search"])
        self.mails(first, t + HOUR, 3, self.accounts[3], ["rule_created", "send"])
        self.mails(second, t + 2 * HOUR, 5, self.accounts[0], ["forwarding_set", "send", "read"])
        self.event(t + 2 * HOUR + 61_500, "mfa_added", self.name(self.accounts[3]), result="ok", session=second.upper(), peer="2001:db8:77::9")
        same_day = self.signin(t + 3 * HOUR, self.name(self.accounts[3]), self.proxied(OFFICE), "ok")
        self.mails(same_day, t + 3 * HOUR, 4, self.accounts[3], ["send", "rule_created", "read"])
        own = self.session()
        self.event(t + 3 * HOUR + 5_000, "exchange", self.name(self.accounts[3]), result="ok", session=own, parent=same_day, **self.proxied(carrier))
        self.mails(own, t + 4 * HOUR, 2, self.accounts[3], ["send"])
        again = self.signin(t + 5 * HOUR, self.name(self.accounts[11]), self.proxied(carrier), "ok")
        self.event(t + 5 * HOUR + 33_900, "consent", self.name(self.accounts[11]), result="ok", session=again, **self.proxied("198.51.100.61"))
        self.signin(t + 5 * HOUR - 90_000, self.name(self.accounts[11]), self.proxied(carrier), "mfa_denied")

    def gateway_spray(self):
        """Six names in exactly an hour, over the full hour and over the moment at which session numbers begin anew."""
        source, start = "198.51.100.77", STEP - 1_000_000
        for n, account in enumerate(self.accounts[33:39]):
            self.login(start + n * 720_000, self.name(account), source, "bad_password")
        self.login(start + 300_000, self.name(self.accounts[33]), source, "local_deny")
        t = start + 20 * HOUR
        session, number = self.login(t, self.name(self.accounts[36]), source, "ok")
        for n, share in enumerate(["plans", "hr", "hr", "board"]):
            self.fetch(t + 65_000 * (n + 1), number, share)
        child = self.session()
        self.event(t + 700_000, "exchange", self.name(self.accounts[36]), result="ok", session=child, parent=session, peer="192.0.2.240")
        self.mails(child, t + 800_000, 3, self.accounts[36], ["read", "send"])

    def written_addresses(self):
        """One address in several spellings each: IPv6, and IPv4 inside of IPv6. One peer that poses as our office."""
        six = ["[2001:DB8:0:0::5]:443", "2001:db8::5", "2001:0db8:0000::0005"]
        for n, account in enumerate([*self.accounts[39:43], "info", "scanner", "Info@lindau.example"]):
            self.signin(DAY0 + 80 * HOUR + n * 400_000, account, self.proxied(six[n % 3], forged=n % 2 == 0), "unknown_user" if n > 3 else "bad_password")
        four = ["::ffff:192.0.2.200", "192.0.2.200:40112", "[::ffff:192.0.2.200]:9", "192.0.2.200"]
        for n, account in enumerate(self.accounts[14:20]):
            self.signin(DAY0 + 90 * HOUR + n * 300_000, self.name(account), self.proxied(four[n % 4]), "bad_password")
        self.signin(DAY0 + 91 * HOUR, self.name(self.accounts[20]), self.proxied(four[0]), "mfa_denied")
        self.signin(DAY0 + 92 * HOUR, self.name(self.accounts[20]), self.proxied(four[1]), "mfa_denied")
        for n, account in enumerate(self.accounts[26:33]):
            self.signin(DAY0 + 95 * HOUR + n * 250_000, self.name(account), {"peer": "192.0.2.77", "xff": OFFICE}, "bad_password")
        entered = self.signin(DAY0 + 96 * HOUR, self.name(self.accounts[28]), {"peer": "192.0.2.77", "xff": OFFICE}, "ok")
        self.mails(entered, DAY0 + 96 * HOUR, 2, self.accounts[28], ["search", "forwarding_set"])


def _zone(t, minutes):
    shown = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(t // 1000 + minutes * 60))
    return shown + ("Z" if not minutes else f"+{minutes // 60:02d}:{minutes % 60:02d}")


def _table(header, rows, delimiter=","):
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows([header, *rows])
    return out.getvalue()


def _gateway_log(events):
    lines = [*sorted(events), (STEP - 1, "systemd[1]: Time has been changed"), (STEP - 1, "vpnd[1204]: started")]
    shown = []
    for t, text in sorted(lines, key=lambda line: line[0]):
        offset = GATEWAY_OFFSETS[t >= STEP - 1]
        stamp = time.gmtime(t // 1000 - offset)
        shown.append(f"{time.strftime('%b', stamp)} {stamp.tm_mday:2d} {time.strftime('%H:%M:%S', stamp)} gw1 {text}\n")
    return "".join(shown)


def files():
    """{name: text} of all evidence."""
    case = Case()
    case.ordinary_days()
    case.lookalikes()
    case.big_spray()
    case.gateway_spray()
    case.written_addresses()
    case.number_logins()
    records = sorted(case.idp, key=lambda r: r["t"] - 3 * HOUR * bool(r.pop("early", False)))
    idp = "".join(json.dumps({"id": f"E{4000 + n}", **record}) + "\n" for n, record in enumerate(records))
    mail = []
    for n, (t, mailbox, operation, session) in enumerate(sorted(case.mail)):
        detail = ["", "Re: offer; see below", 'rule "cleanup"\nmove to RSS Feeds', "invoice 2026-118"][n * 7 % 4]
        mail.append([f"M{700 + n}", _zone(t, (0, 60, 60, 330)[n * 5 % 4]), mailbox, operation, session.upper() if n % 3 else session, detail])
    own = [["203.0.113.128/27", "own"], ["10.0.0.0/8", "own"], ["2001:db8:10::/48", "own"], *([p + "/32", "proxy"] for p in PROXIES)]
    people = [[account, shown, ";".join(aliases)] for account, shown, aliases in case.people]
    return {
        "idp.jsonl": idp,
        "vpn.log": _gateway_log(case.vpn),
        "mail.csv": _table(["id", "time", "mailbox", "operation", "session", "detail"], mail, ";"),
        "directory.csv": _table(["account", "name", "aliases"], people),
        "networks.csv": _table(["network", "role"], own),
    }


if __name__ == "__main__":
    import pathlib
    import sys

    for name, text in files().items():
        pathlib.Path(sys.argv[1], name).write_text(text, encoding="utf-8")
