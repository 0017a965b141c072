package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/server"
)

// servedWorld is a runtime, and its server without a connection.
func servedWorld(b testing.TB) (*core.Runtime, http.Handler) {
	b.Helper()
	rt, err := core.Open(b.Context(), memlane.New(), &core.Options{
		Queues: []runlane.Queue{{Name: "default"}}, Tasks: []core.ClientTask{{Definition: resize.Definition()}},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = rt.Close(context.Background()) })
	handler, err := server.New(rt, &server.Options{Access: byScope, Logger: discard})
	if err != nil {
		b.Fatal(err)
	}
	return rt, handler
}

const benchBody = `{"task":"mail.welcome","foreign":true,"payload":{"to":"ada@example.com","subject":"Welcome","lines":[1,2,3]}}`

// What the API adds to a trigger, in turns with the bare call: through the table, and over a connection of loopback that is kept.
func BenchmarkOverhead(b *testing.B) {
	rt, handler := servedWorld(b)
	url, client := serveBench(b, rt)
	ask := func() *http.Request {
		r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, url+"/v1/runs", strings.NewReader(benchBody))
		r.Header.Set("Content-Type", "application/json")
		r.RequestURI = ""
		return r
	}
	call := welcome.With(json.RawMessage(`{"to":"ada@example.com","subject":"Welcome","lines":[1,2,3]}`))
	ways := [3]func(){
		func() {
			if _, err := rt.Trigger(b.Context(), call, nil); err != nil {
				b.Fatal(err)
			}
		},
		func() {
			w, r := httptest.NewRecorder(), ask()
			r.URL.Scheme, r.URL.Host = "", ""
			if handler.ServeHTTP(w, r); w.Code != http.StatusCreated {
				b.Fatal(w.Body)
			}
		},
		func() { exchange(b, client, ask()) },
	}
	const rounds = 2000
	var took [len(ways)][]time.Duration
	for b.Loop() {
		for range rounds {
			for i, way := range ways {
				began := time.Now()
				way()
				took[i] = append(took[i], time.Since(began))
			}
		}
	}
	bare := quantile(took[0], 0.5)
	b.ReportMetric(quantile(took[1], 0.5)-bare, "µs/handler-p50")
	b.ReportMetric(quantile(took[2], 0.5)-bare, "µs/loopback-p50")
}

// From a trigger to the answer of a claim that waits for it, over loopback.
func BenchmarkClaim(b *testing.B) {
	rt, _ := servedWorld(b)
	url, client := serveBench(b, rt)
	ask := func(path, body string) []byte {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url+path, strings.NewReader(body))
		if err != nil {
			b.Error(err)
			return nil
		}
		r.Header.Set("Content-Type", "application/json")
		return exchange(b, client, r)
	}
	claims := make(chan time.Time)
	go func() { // ends with the benchmark
		defer close(claims)
		for b.Context().Err() == nil {
			var claim struct {
				Token string `json:"token"`
			}
			text := ask("/v1/work/claim", `{"wait":"20s"}`)
			if json.Unmarshal(text, &claim) != nil || claim.Token == "" {
				return
			}
			at := time.Now()
			ask("/v1/work/complete", `{"token":"`+claim.Token+`"}`)
			claims <- at
		}
	}()
	const rounds = 500
	var took []time.Duration
	for b.Loop() {
		for range rounds {
			<-time.After(time.Duration(len(took)%10) * time.Millisecond) // the claim waits by then
			began := time.Now()
			if ask("/v1/runs", `{"task":"work.resize","payload":1}`) == nil {
				b.FailNow()
			}
			at, ok := <-claims
			if !ok {
				b.Fatal("the claims ended")
			}
			took = append(took, at.Sub(began))
		}
	}
	b.ReportMetric(quantile(took, 0.5)/1000, "p50-ms")
	b.ReportMetric(quantile(took, 0.99)/1000, "p99-ms")
}

// quantile is in microseconds.
func quantile(took []time.Duration, part float64) float64 {
	sorted := slices.Sorted(slices.Values(took))
	return float64(sorted[int(part*float64(len(sorted)-1))].Nanoseconds()) / 1000
}

// serveBench serves a runtime on loopback until the benchmark ends.
func serveBench(b *testing.B, rt *core.Runtime) (url string, client *http.Client) {
	b.Helper()
	l, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	served := make(chan error, 1)
	go func() { // ends with the benchmark
		served <- server.Serve(ctx, l, rt, &server.Options{Logger: discard}, time.Second)
	}()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	b.Cleanup(func() {
		transport.CloseIdleConnections()
		stop()
		if err := <-served; err != nil {
			b.Error(err)
		}
	})
	return "http://" + l.Addr().String(), &http.Client{Transport: transport}
}

// exchange returns the answer's body, nil for one that is no success.
func exchange(b *testing.B, client *http.Client, r *http.Request) []byte {
	b.Helper()
	response, err := client.Do(r)
	if err != nil {
		if b.Context().Err() == nil {
			b.Error(err)
		}
		return nil
	}
	text, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil || response.StatusCode > http.StatusCreated {
		b.Errorf("%d %s %v", response.StatusCode, text, err)
		return nil
	}
	return text
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
			rt, _ := servedWorld(b)
			url, client := serveBench(b, rt)
			var made atomic.Int64
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url+c.path, strings.NewReader(c.body))
					if err != nil {
						b.Error(err)
						return
					}
					r.Header.Set("Content-Type", "application/json")
					if exchange(b, client, r) == nil {
						return
					}
					made.Add(int64(c.runs))
				}
			})
			b.ReportMetric(float64(made.Load())/b.Elapsed().Seconds(), "runs/s")
		})
	}
}
