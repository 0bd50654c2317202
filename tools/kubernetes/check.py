#!/usr/bin/python3
"""Holds manifests against the published API of Kubernetes, as its Python client has it (Debian's python3-kubernetes): kinds
that there are, no field that there is not, none missing that has to be there, and each of its type.
    tools/kubernetes/check.py FILE..."""
import re
import sys

import kubernetes.client as api
import yaml

PLAIN = {"str": str, "int": int, "bool": bool, "float": float, "object": object, "datetime": str}


def problems(value, wanted, path):
    """What is wrong with a value that has to be of a type of the client's."""
    items = re.fullmatch(r"list\[(.*)\]", wanted)
    values = re.fullmatch(r"dict\(str, (.*)\)", wanted)
    if items:
        if not isinstance(value, list):
            return [f"{path} is no list"]
        return [p for i, one in enumerate(value) for p in problems(one, items[1], f"{path}[{i}]")]
    if values:
        if not isinstance(value, dict):
            return [f"{path} is no map"]
        return [p for key, one in value.items() for p in problems(one, values[1], f"{path}.{key}")]
    if wanted in PLAIN:
        is_flag_for_number = wanted == "int" and isinstance(value, bool)
        return [] if isinstance(value, PLAIN[wanted]) and not is_flag_for_number else [f"{path} is no {wanted}"]
    return problems_of_model(value, getattr(api, wanted), path)


def problems_of_model(value, model, path):
    if not isinstance(value, dict):
        return [f"{path} is no map"]
    names = {shown: name for name, shown in model.attribute_map.items()}
    found = [f"{path}: there is no {key}" for key in value if key not in names]
    for key, one in value.items():
        if key in names:
            found += problems(one, model.openapi_types[names[key]], f"{path}.{key}")
    try:
        model(**{names[key]: one for key, one in value.items() if key in names})
    except ValueError as wrong:  # what has to be there is not, or is none of the words that are allowed
        found.append(f"{path}: {wrong}")
    return found


def model_of(manifest):
    group, _, version = manifest["apiVersion"].rpartition("/")
    return getattr(api, version.capitalize() + manifest["kind"], None) if "." in group or group in ("", "apps", "policy") else None


def main(files):
    found, count = [], 0
    for file in files:
        with open(file, encoding="utf-8") as text:
            for manifest in yaml.safe_load_all(text):
                count += 1
                model = model_of(manifest)
                path = f"{file}: {manifest['kind']}"
                found += problems_of_model(manifest, model, path) if model else [f"{path}: no such kind"]
    print("\n".join(found) or f"{count} manifests: ok")
    return 1 if found or count == 0 else 0


sys.exit(main(sys.argv[1:]))
