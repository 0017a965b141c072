package demo

import (
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/runlane/runlane-go"
)

// serve answers on a free port of this machine until stop, which cuts connections off.
func serve(handler http.Handler) (url string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, &runlane.Error{
			Code:    runlane.ErrConfigurationInvalid,
			Message: "receiver cannot listen on 127.0.0.1",
			Hint:    "free a port",
			Cause:   err,
		}
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan struct{})
	go func() { // the receiver, until stop
		defer close(ended)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			_ = server.Close() // senders see it, and the demo reports what it lost
		}
	}()
	return "http://" + listener.Addr().String(), func() {
		_ = server.Close()
		<-ended
	}, nil
}
