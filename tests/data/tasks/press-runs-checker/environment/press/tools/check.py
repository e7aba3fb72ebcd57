import csv
import json
import sys

jobs = csv.DictReader(open("/srv/press/jobs.csv"))
want = {job["job"]: int(job["spoiled"]) * 1000 // int(job["sheets"]) for job in jobs}
sys.exit(0 if json.load(open("/srv/press/out/waste.json")) == want else 1)
