"""The journey's calls in the words of openapi-generator's Python client: one call, its answer as JSON."""

import json
import os
import sys

import openapi_client as api

name, *words = sys.argv[1:]
configuration = api.Configuration(host=os.environ["BASE_URL"])
configuration.access_token = os.environ["TOKEN"]
client = api.ApiClient(configuration)


def create_collection(name):
    return {"id": api.CollectionsApi(client).create_collection(api.CreateCollection(name=name)).id}


def collection_status(collection_id):
    return api.CollectionsApi(client).get_collection(collection_id).contract.status


def create_unit(collection_id):
    return {"id": api.UnitsApi(client).create_unit(api.CreateUnit(collection_id=collection_id)).id}


def pair_test_chip(unit_id):
    body = api.PairChipByTest(unit_id=unit_id, is_test=True)
    return {"chip_id": api.ChipsApi(client).pair_chip(body).chip_id}


def token_status(unit_id):
    return api.UnitsApi(client).get_unit(unit_id).collection.token.status


def test_tap(chip_id):
    made = api.TapsApi(client).create_test_tap(api.CreateTestTap(chip_id=chip_id))
    return {"chip_id": made.chip_id, "e": made.e}


def tap(chip_id, e):
    return api.TapsApi(client).create_tap(api.CreateTap(chip_id=chip_id, e=e)).session_token.token


def claim(unit_id, recipient):
    return {"id": api.ClaimsApi(client).create_claim(unit_id, api.CreateClaim(recipient=recipient)).id}


def claim_status(unit_id, claim_id):
    return api.ClaimsApi(client).get_claim(unit_id, claim_id).status


def code_of(chip_id, e):
    try:
        tap(chip_id, e)
    except api.ApiException as refused:
        return json.loads(refused.body)["error"]["code"]


print(json.dumps(globals()[name](*words)))
