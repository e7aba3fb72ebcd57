#!/usr/bin/env python3
"""Stands for a command-line agent that Harbor starts as mini-swe-agent: asks the model, runs what it says, until done."""

import json
import re
import subprocess
import sys
import urllib.request

command_line = " ".join(sys.argv)
base = re.search(r"api_base=(\S+)", command_line)[1]
task = re.search(r"--task=(.*?) --output", command_line, re.DOTALL)[1]
messages = [{"role": "user", "content": task}]
while True:
    body = json.dumps({"model": "fake", "messages": messages}).encode()
    request = urllib.request.Request(
        f"{base}/chat/completions", body, {"Content-Type": "application/json", "Authorization": "Bearer none"}
    )
    message = json.load(urllib.request.urlopen(request, timeout=30))["choices"][0]["message"]
    messages.append(message)
    if not message.get("tool_calls"):
        print(message["content"])
        break
    for call in message["tool_calls"]:
        script = json.loads(call["function"]["arguments"])["command"]
        done = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": done.stdout.decode()})
