package server_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/server"
)

// benchWorld is a runtime without the clock and the log of tests.
func benchWorld(b *testing.B) (*core.Runtime, http.Handler) {
	b.Helper()
	rt, err := core.Open(b.Context(), memlane.New(), &core.Options{Queues: []runlane.Queue{{Name: "default"}}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = rt.Close(b.Context()) })
	handler, err := server.New(rt, &server.Options{Access: byScope, Logger: discard})
	if err != nil {
		b.Fatal(err)
	}
	return rt, handler
}

const benchBody = `{"task":"mail.welcome","foreign":true,"payload":{"to":"ada@example.com","subject":"Welcome","lines":[1,2,3]}}`

// What HTTP adds to a call: "core" is the call alone, "handler" the same through the table, without a connection.
func BenchmarkTrigger(b *testing.B) {
	b.Run("core", func(b *testing.B) {
		rt, _ := benchWorld(b)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := rt.Trigger(b.Context(), welcome.With(json.RawMessage(`{"to":"ada@example.com","subject":"Welcome","lines":[1,2,3]}`)), nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("handler", func(b *testing.B) {
		_, handler := benchWorld(b)
		b.ReportAllocs()
		for b.Loop() {
			r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/v1/runs", strings.NewReader(benchBody))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			if handler.ServeHTTP(w, r); w.Code != http.StatusCreated {
				b.Fatal(w.Body)
			}
		}
	})
}

func BenchmarkGet(b *testing.B) {
	b.Run("core", func(b *testing.B) {
		rt, _ := benchWorld(b)
		made, err := rt.Trigger(b.Context(), welcome.With(json.RawMessage(`{"to":"ada@example.com"}`)), nil)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := rt.Runs().Get(b.Context(), made.Run.ID); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("handler", func(b *testing.B) {
		rt, handler := benchWorld(b)
		made, err := rt.Trigger(b.Context(), welcome.With(json.RawMessage(`{"to":"ada@example.com"}`)), nil)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/v1/runs/"+string(made.Run.ID), nil))
			if w.Code != http.StatusOK {
				b.Fatal(w.Body)
			}
		}
	})
}

// Runs a second over loopback, single and in batches of a thousand, from 16 callers in the same process.
func BenchmarkOverLoopback(b *testing.B) {
	var batch bytes.Buffer
	batch.WriteString(`{"runs":[` + benchBody)
	for range 999 {
		batch.WriteString("," + benchBody)
	}
	batch.WriteString("]}")
	for _, c := range []struct {
		name, path, body string
		runs             int
	}{{"single", "/v1/runs", benchBody, 1}, {"batch", "/v1/batch", batch.String(), 1000}} {
		b.Run(c.name, func(b *testing.B) {
			rt, _ := benchWorld(b)
			l, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			served := make(chan error, 1)
			go func() { // ends with the benchmark
				served <- server.Serve(b.Context(), l, rt, &server.Options{Logger: discard}, time.Second)
			}()
			transport := &http.Transport{MaxIdleConnsPerHost: 64}
			client := &http.Client{Transport: transport}
			var made atomic.Int64
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://"+l.Addr().String()+c.path, strings.NewReader(c.body))
					if err != nil {
						b.Error(err)
						return
					}
					r.Header.Set("Content-Type", "application/json")
					response, err := client.Do(r)
					if err != nil {
						b.Error(err)
						return
					}
					text, _ := io.ReadAll(response.Body)
					_ = response.Body.Close()
					if response.StatusCode > 201 {
						b.Errorf("%d %s", response.StatusCode, text)
						return
					}
					made.Add(int64(c.runs))
				}
			})
			b.ReportMetric(float64(made.Load())/b.Elapsed().Seconds(), "runs/s")
			transport.CloseIdleConnections()
		})
	}
}
