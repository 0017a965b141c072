package main

import (
	"archive/zip"
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestPack_IsAFunctionOfTheContent(t *testing.T) {
	t.Parallel()
	content := bytes.Repeat([]byte("a program "), 10_000)
	first, err := pack(content)
	if err != nil {
		t.Fatal(err)
	}
	second, err := pack(bytes.Clone(content))
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("two zips of one program differ: %v", err)
	}
	if other, err := pack(content[1:]); err != nil || bytes.Equal(first, other) {
		t.Errorf("two programs have one zip: %v", err)
	}
	archive, err := zip.NewReader(bytes.NewReader(first), int64(len(first)))
	if err != nil {
		t.Fatal(err)
	}
	if len(archive.File) != 1 || archive.File[0].Name != "bootstrap" || archive.File[0].Mode() != 0o755 {
		t.Errorf("the zip holds %+v", archive.File)
	}
	if year := archive.File[0].Modified.Year(); year != 1980 {
		t.Errorf("the zip remembers %d", year)
	}
	file, err := archive.Open("bootstrap")
	if err != nil {
		t.Fatal(err)
	}
	var unpacked bytes.Buffer
	if _, err := unpacked.ReadFrom(file); err != nil || !bytes.Equal(unpacked.Bytes(), content) {
		t.Errorf("unpacked are %d bytes, %v", unpacked.Len(), err)
	}
}

func TestWrite_AboveTheLimit_FailsAndWritesNothing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	program, path := filepath.Join(folder, "bootstrap"), filepath.Join(folder, "f.zip")
	if err := os.WriteFile(program, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if line, err := write(program, path, 0.00001); err == nil || !strings.Contains(line, "MiB") {
		t.Errorf("%q, %v", line, err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the zip is there: %v", err)
	}
	if _, err := write(program, path, defaultLimit); err != nil {
		t.Error(err)
	}
	if _, err := write(filepath.Join(folder, "absent"), path, defaultLimit); err == nil {
		t.Error("a program that is not there was packed")
	}
}

// Two people build the same commit in different folders, and get the same bytes. The first time on a machine it compiles everything for
// arm64, for a minute; then it takes seconds.
func TestBuild_InAnotherFolder_GivesTheSameBytes(t *testing.T) {
	t.Parallel()
	here, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	there := filepath.Join(t.TempDir(), "somewhere", "else")
	copySources(t, here, there)
	var programs [][]byte
	for _, folder := range []string{here, there} {
		artifacts := t.TempDir()
		command(t, folder, "make", "-f", "build.mk", "build-Bridge", "ARTIFACTS_DIR="+artifacts)
		program := filepath.Join(artifacts, "bootstrap")
		content, err := os.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, content)
		line, err := write(program, filepath.Join(artifacts, "bridge.zip"), defaultLimit)
		if err != nil {
			t.Error(err)
		}
		t.Log(filepath.Base(line))
		if bytes.Contains(content, []byte(here)) || bytes.Contains(content, []byte(there)) {
			t.Error("the program names the folder that it was built in")
		}
	}
	if !bytes.Equal(programs[0], programs[1]) {
		t.Error("the programs differ")
	}
	judge(t, programs[0])
}

// judge wants what Lambda's arm64 machines run: a static program without symbols.
func judge(t *testing.T, program []byte) {
	t.Helper()
	file, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	if file.Machine != elf.EM_AARCH64 {
		t.Errorf("it is for %s", file.Machine)
	}
	if libraries, err := file.ImportedLibraries(); err == nil && len(libraries) > 0 {
		t.Errorf("it needs %v", libraries)
	}
	if file.Section(".symtab") != nil || file.Section(".debug_info") != nil {
		t.Error("it has symbols")
	}
	if bytes.Contains(program, []byte("net/rpc.(*Server)")) {
		t.Error("it has the runtime of old Lambda functions in it")
	}
}

func copySources(t *testing.T, from, to string) {
	t.Helper()
	for _, name := range strings.Split(command(t, from, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00") {
		content, err := os.ReadFile(filepath.Join(from, name))
		if name == "" || err != nil {
			continue // deleted and not yet committed, or a link to a folder
		}
		target := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(target, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func command(t *testing.T, folder, name string, arguments ...string) string {
	t.Helper()
	var out, problems bytes.Buffer
	c := exec.CommandContext(t.Context(), name, arguments...)
	c.Dir, c.Stdout, c.Stderr = folder, &out, &problems
	c.Env = append(os.Environ(), "MAKEFLAGS=")
	if err := c.Run(); err != nil {
		t.Fatalf("%s %v: %v: %s", name, arguments, err, &problems)
	}
	return out.String()
}
