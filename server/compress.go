package server

import (
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// minCompressed is the smallest answer that is compressed: a smaller one fits into one packet anyway.
const minCompressed = 1400

// encoders compress whole answers, by the name of their encoding. Both are safe for concurrent use.
var encoders = map[string]func([]byte) []byte{"zstd": zstdOf, "gzip": gzipOf}

var zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2))
	if err != nil { // the options are constant
		panic(err)
	}
	return encoder
})

func zstdOf(text []byte) []byte { return zstdEncoder().EncodeAll(text, make([]byte, 0, len(text)/2)) }

var gzipWriters = sync.Pool{New: func() any {
	writer, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is one
	return writer
}}

func gzipOf(text []byte) []byte {
	writer, _ := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(writer)
	var out appender
	writer.Reset(&out)
	_, _ = writer.Write(text) // memory takes everything
	_ = writer.Close()
	return out
}

// appender is memory to write to.
type appender []byte

// Write implements io.Writer.
func (a *appender) Write(b []byte) (int, error) {
	*a = append(*a, b...)
	return len(b), nil
}

// accepted is the encoding that the caller takes and this package prefers; "" for none. An encoding with q=0 is
// refused; other weights do not matter between two that are both cheap.
func accepted(header string) string {
	taken := map[string]bool{}
	for part := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(strings.ToLower(part), ";")
		weight = strings.ReplaceAll(weight, " ", "")
		taken[strings.TrimSpace(name)] = strings.Trim(weight, "0.") != "q="
	}
	for _, name := range []string{"zstd", "gzip"} {
		if taken[name] {
			return name
		}
	}
	return ""
}

// write sends an answer, compressed where that is worth it.
func (a *api) write(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	if len(body) >= minCompressed {
		if name := accepted(r.Header.Get("Accept-Encoding")); name != "" {
			body = encoders[name](body)
			h.Set("Content-Encoding", name)
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a caller that is gone needs no answer
	}
}
