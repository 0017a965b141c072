package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/console"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/server"
)

// readTokens reads what "runlane token --file" writes: an object a line.
func readTokens(from io.Reader) (tokens []server.Token, err error) {
	for lines := json.NewDecoder(from); ; {
		var token server.Token
		switch err := lines.Decode(&token); {
		case errors.Is(err, io.EOF):
			return tokens, nil
		case err != nil:
			return nil, err
		}
		tokens = append(tokens, token)
	}
}

// The console in a mux of your own, below a prefix. People log in with a token, which the form keeps in a cookie.
func ExampleNew() {
	ctx := context.Background()
	task := runlane.NewTask[string]("mail.welcome", nil)
	rt, err := core.Open(ctx, memlane.New(), &core.Options{Handlers: []runlane.Handler{
		task.Handle(func(context.Context, *runlane.Attempt, string) error { return nil }),
	}})
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close(ctx) }()
	file := `{"name":"ada","hash":"` + server.HashToken("a long random text") + `","scopes":["read","operate"]}`
	tokens, err := readTokens(strings.NewReader(file)) // a program opens tokens.ndjson
	if err != nil {
		panic(err)
	}
	access, err := server.TokenAccess(tokens...)
	if err != nil {
		panic(err)
	}
	handler, err := server.New(rt, &server.Options{
		Prefix: "/runlane",
		Access: access,
		Root:   console.New(rt, nil),
	})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/runlane/", handler)

	form := url.Values{"token": {"a long random text"}, "to": {"/queues"}}.Encode()
	login := httptest.NewRequestWithContext(ctx, http.MethodPost, "/runlane/login", strings.NewReader(form))
	login.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	login.Header.Set("Sec-Fetch-Site", "same-origin") // as browsers do
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, login)
	fmt.Println(w.Code, w.Header().Get("Location"))

	page := httptest.NewRequestWithContext(ctx, http.MethodGet, w.Header().Get("Location"), http.NoBody)
	for _, cookie := range w.Result().Cookies() {
		page.AddCookie(cookie)
	}
	w = httptest.NewRecorder()
	mux.ServeHTTP(w, page)
	fmt.Println(w.Code, strings.Contains(w.Body.String(), "<h1>Queues</h1>"))
	// Output:
	// 303 /runlane/queues
	// 200 true
}
