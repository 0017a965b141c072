# The worker of the example application, alone in its image: a static program, the certificates that it trusts, a user without rights.
# docs/containers.md says when to prefer it to the functions. For your own tasks change the folder of go build.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY sqlitelane/go.mod sqlitelane/go.sum sqlitelane/
COPY examples/worker/go.mod examples/worker/go.sum examples/worker/
RUN go -C examples/worker mod download
COPY . .
RUN CGO_ENABLED=0 go build -C examples/worker -trimpath -buildvcs=false -ldflags "-s -w" -o /worker .

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /worker /worker
USER 65532:65532
STOPSIGNAL SIGTERM
ENTRYPOINT ["/worker"]
# The grace is less than the time from SIGTERM to SIGKILL: 30 s on ECS and Kubernetes. docker stop gives 10 s, unless told -t 30.
CMD ["-concurrency", "10", "-grace", "20s"]
