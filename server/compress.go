package server

import (
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// minCompressed is the smallest answer that is compressed. A smaller one fits into one packet anyway.
const minCompressed = 1400

// encoders compress whole answers, by encoding name. Both are safe for concurrent use.
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
	writer, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	return writer
}}

func gzipOf(text []byte) []byte {
	writer, _ := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(writer)
	var out appender
	writer.Reset(&out)
	_, _ = writer.Write(text) // cannot fail: it writes to memory
	_ = writer.Close()
	return out
}

type appender []byte

func (a *appender) Write(b []byte) (int, error) {
	*a = append(*a, b...)
	return len(b), nil
}

// chooseEncoding returns the preferred encoding that the caller accepts, or "". It ignores weights other than q=0,
// since both encodings are cheap.
func chooseEncoding(header string) string {
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

// write sends an answer, compressed if it is large enough.
func (a *api) write(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	if len(body) >= minCompressed {
		if name := chooseEncoding(r.Header.Get("Accept-Encoding")); name != "" {
			body = encoders[name](body)
			h.Set("Content-Encoding", name)
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // nobody to report to: the caller is gone
	}
}
