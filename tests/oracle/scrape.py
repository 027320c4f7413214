"""Reads Prometheus' text as the public client does, and tells every sample as JSON."""

import json
import sys

from prometheus_client.parser import text_string_to_metric_families

samples = [
    {"family": family.name, "type": family.type, "help": family.documentation, "name": sample.name,
     "labels": sample.labels, "value": sample.value}
    for family in text_string_to_metric_families(sys.stdin.read())
    for sample in family.samples
]
json.dump(samples, sys.stdout)
