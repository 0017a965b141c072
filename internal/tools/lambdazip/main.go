// Command lambdazip packs a Lambda function: a zip with the one file bootstrap, executable. Equal programs give equal
// zips, whenever and wherever they are packed. It prints the sizes, and fails above the limit: what Lambda loads before
// it starts a function is part of every cold start.
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	mebibyte = 1 << 20
	// defaultLimit is for the zip, in MiB.
	defaultLimit = 5
)

func main() {
	limit := flag.Float64("limit", defaultLimit, "the largest `size` of a zip in MiB")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: lambdazip [-limit MIB] PROGRAM ZIP")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	line, err := write(flag.Arg(0), flag.Arg(1), *limit)
	if line != "" {
		fmt.Println(line)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lambdazip:", err)
		os.Exit(1)
	}
}

// write packs the program into the zip and says how large both are.
func write(program, path string, limit float64) (string, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	packed, err := pack(content)
	if err != nil {
		return "", err
	}
	size := float64(len(packed)) / mebibyte
	line := fmt.Sprintf("%s: %.2f MiB, unpacked %.2f MiB", path, size, float64(len(content))/mebibyte)
	if size > limit {
		return line, fmt.Errorf("%s has %.2f MiB, more than %g", path, size, limit)
	}
	return line, os.WriteFile(path, packed, 0o644) // it is to be read by the user who deploys it
}

// pack is the zip, a function of the content alone.
func pack(content []byte) ([]byte, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	archive.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	header := &zip.FileHeader{
		Name:     "bootstrap",
		Method:   zip.Deflate,
		Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	header.SetMode(0o755)
	file, err := archive.CreateHeader(header)
	if err != nil {
		return nil, err
	}
	if _, err := file.Write(content); err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
