package sealed_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/sealed"
)

// do stops the Example at an error.
func do[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

var greet = runlane.NewTask[string]("greet", nil)

// What a runtime with the codec writes, only runtimes with the key read.
func ExampleNew() {
	ctx := context.Background()
	key := do(sealed.NewKey("2026-11"))
	codec := do(sealed.New([]sealed.Key{key}, &sealed.Options{RefusePlain: true})) // nothing was stored before there was a codec

	storage := memlane.NewStorage(nil)
	l := do(lane.New(storage, memlane.NewTransport(nil), nil))
	rt := do(core.Open(ctx, l, &core.Options{
		Codec: codec,
		Handlers: []runlane.Handler{greet.Handle(func(_ context.Context, a *runlane.Attempt, name string) error {
			return a.SetOutput("hello " + name)
		})},
	}))
	result := do(rt.RunNow(ctx, greet.With("Ada"), nil))
	run := do(rt.Runs().Get(ctx, result.Run.ID))
	fmt.Printf("payload %s, output %s, encrypted with %s\n", run.Payload, run.Output, run.Sealed.PayloadKey)

	stored := do(storage.GetRun(ctx, lane.RunKey{Environment: "default", RunID: run.ID}))
	fmt.Println("stored in the clear:", strings.Contains(string(stored.Payload), "Ada"))
	_ = rt.Close(ctx)
	// Output:
	// payload "Ada", output "hello Ada", encrypted with 2026-11
	// stored in the clear: false
}

// The line is what a file or a secret store keeps. Printing a key shows its name alone.
func ExampleNewKey() {
	key := do(sealed.NewKey("2026-11"))
	fmt.Println(key)
	fmt.Println(len(key.Line()), "bytes for the file, beginning with", key.Line()[:8])
	// Output:
	// sealed.Key(2026-11)
	// 52 bytes for the file, beginning with 2026-11=
}

// A secret from somewhere else makes a key, if it has 32 bytes.
func ExampleKeyOf() {
	_, err := sealed.KeyOf("2026-11", []byte("too short"))
	fmt.Println(err)
	// Output:
	// configuration_invalid: encryption: key "2026-11" has 9 bytes (use 32 random bytes)
}

// While keys are changed there are two: the first one encrypts, the other opens what it encrypted before.
func ExampleParseKeys() {
	keys := do(sealed.ParseKeys(`
# since November
2026-11=f6lq2w1zV8QmQb6v0r0m3nUq7m3lJ0mYh2bYp9i0q2E=
2026-05=Zk1uQ0JtT2p3b2Z2c2Rrd2xja2VqZmhnYmRuZmRqc2s=
`))
	for _, key := range keys {
		fmt.Println(key.ID())
	}
	fmt.Println(do(sealed.New(keys, nil)))
	// Output:
	// 2026-11
	// 2026-05
	// sealed.Codec(2026-11, 2026-05)
}

// Without the variables there is no codec, and payloads are stored as they are.
func ExampleFromEnv() {
	key := do(sealed.NewKey("2026-11"))
	_ = os.Setenv(sealed.KeysVariable, key.Line())
	defer func() { _ = os.Unsetenv(sealed.KeysVariable) }()
	codec := do(sealed.FromEnv(nil))
	fmt.Println(codec)
	// Output:
	// sealed.Codec(2026-11)
}

// keyService is what KMS is asked for, as two lines over its client do it:
//
//	out, err := client.Decrypt(ctx, &kms.DecryptInput{
//		CiphertextBlob: wrapped, EncryptionContext: map[string]string{"runlane-key": id},
//	})
//	return out.Plaintext, err
type keyService interface {
	Decrypt(ctx context.Context, id string, wrapped []byte) ([]byte, error)
}

// Programs may hold keys that are encrypted themselves, and have them decrypted when they start: by KMS, whose policy then says who
// reads payloads, and whose log says who did.
func ExampleUnwrapKeys() {
	var kms keyService = scriptedService{}
	wrapped := "2026-11=" + base64.StdEncoding.EncodeToString([]byte("wrapped by the service")) // from a variable or a file
	keys := do(sealed.UnwrapKeys(context.Background(), wrapped, kms.Decrypt))
	fmt.Println(do(sealed.New(keys, nil)))
	// Output:
	// sealed.Codec(2026-11)
}

// scriptedService stands for KMS.
type scriptedService struct{}

func (scriptedService) Decrypt(_ context.Context, _ string, wrapped []byte) ([]byte, error) {
	return append(make([]byte, 0, sealed.KeyBytes), strings.Repeat(string(wrapped), 2)[:sealed.KeyBytes]...), nil
}
