// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/cri/critest"
)

// misfortune decides which calls go wrong, by the seed and by how often the same thing has been asked before, not by the order in
// which goroutines happen to come.
type misfortune struct {
	seed  uint64
	store atomic.Uint64 // of 1000 writes to the store that go wrong
	calls atomic.Uint64 // of 1000 calls of the runtime that do
	trace *trace        // of what is asked of both
	lie   string        // keys with it are not written, though the answer says so; "": none

	mu   sync.Mutex
	seen map[string]int
}

type verdict int

const (
	fine   verdict = iota
	before         // fails before anything is done
	after          // is done, and fails
	slow           // is done after a while
)

func (m *misfortune) judge(of uint64, what string) (verdict, time.Duration) {
	m.mu.Lock()
	m.seen[what]++
	n := m.seen[what]
	m.mu.Unlock()
	h := fnv.New64a()
	h.Write([]byte(what))
	rng := rand.New(rand.NewPCG(m.seed, h.Sum64()+uint64(n)))
	if rng.Uint64N(1000) >= of {
		return fine, 0
	}
	return verdict(1 + rng.IntN(3)), time.Duration(1+rng.IntN(8000)) * time.Millisecond
}

// life is that of one server: when it is over, nothing that it still asks for is done. That is what kill -9 is to all others.
type life struct {
	over       atomic.Bool
	misfortune *misfortune
	gaveUp     atomic.Pointer[error] // why etcd ended the process, if it did
	dead       chan struct{}         // is closed then
}

// ledger is etcd as one server reaches it.
type ledger struct {
	clientv3.KV
	life *life
}

// do asks for a write.
func (l ledger) do(ctx context.Context, what string, write func() error) error {
	if l.life.over.Load() {
		return rpctypes.ErrStopped
	}
	l.life.misfortune.trace.note("store", what)
	v, d := l.life.misfortune.judge(l.life.misfortune.store.Load(), what)
	switch v {
	case before:
		return rpctypes.ErrNoLeader
	case slow:
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return ctx.Err()
		}
		if l.life.over.Load() {
			return rpctypes.ErrStopped
		}
	}
	err := write()
	if l.life.over.Load() { // a ghost wrote it, and nobody may be told
		return rpctypes.ErrStopped
	}
	if v == after && err == nil {
		return rpctypes.ErrTimeout
	}
	return err
}

// Get implements clientv3.KV.
func (l ledger) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if l.life.over.Load() {
		return nil, rpctypes.ErrStopped
	}
	r, err := l.KV.Get(ctx, key, opts...)
	if l.life.over.Load() {
		return nil, rpctypes.ErrStopped
	}
	return r, err
}

// GetStream implements clientv3.KV.
func (l ledger) GetStream(ctx context.Context, key string, opts ...clientv3.OpOption) (clientv3.GetStreamChan, error) {
	if l.life.over.Load() {
		return nil, rpctypes.ErrStopped
	}
	return l.KV.GetStream(ctx, key, opts...)
}

// Txn implements clientv3.KV.
func (l ledger) Txn(ctx context.Context) clientv3.Txn {
	return &entry{Txn: l.KV.Txn(ctx), ctx: ctx, ledger: l}
}

// entry is one transaction.
type entry struct {
	clientv3.Txn
	ctx    context.Context
	ledger ledger
	what   string
}

// If implements clientv3.Txn.
func (e *entry) If(cs ...clientv3.Cmp) clientv3.Txn {
	for _, c := range cs {
		e.what += string(c.KeyBytes())
	}
	e.Txn = e.Txn.If(cs...)
	return e
}

// Then implements clientv3.Txn.
func (e *entry) Then(ops ...clientv3.Op) clientv3.Txn {
	e.Txn = e.Txn.Then(ops...)
	return e
}

// Else implements clientv3.Txn.
func (e *entry) Else(ops ...clientv3.Op) clientv3.Txn {
	e.Txn = e.Txn.Else(ops...)
	return e
}

// Commit implements clientv3.Txn.
func (e *entry) Commit() (r *clientv3.TxnResponse, err error) {
	if lie := e.ledger.life.misfortune.lie; lie != "" && strings.Contains(e.what, lie) {
		now, err := e.ledger.KV.Get(e.ctx, e.what)
		if err == nil && len(now.Kvs) > 0 {
			return &clientv3.TxnResponse{Header: now.Header, Succeeded: true}, nil
		}
	}
	err = e.ledger.do(e.ctx, e.what, func() error {
		r, err = e.Txn.Commit()
		return err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// wire is the runtime as one server reaches it: a connection without a connection.
type wire struct {
	fake  *critest.Fake
	truth *cri.Client
	life  *life
	begun func(container string) // is told of every container that was started
}

// Invoke implements grpc.ClientConnInterface.
func (w *wire) Invoke(ctx context.Context, path string, in, out any, _ ...grpc.CallOption) error {
	service, method, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	var to any = w.truth.Runtime
	if strings.HasSuffix(service, "ImageService") {
		to = w.truth.Images
	}
	if w.life.over.Load() {
		return status.Error(codes.Unavailable, "nobody is there to ask")
	}
	var v verdict
	if changes(method) {
		w.life.misfortune.trace.note("runtime", method+" "+subject(in))
		v, _ = w.life.misfortune.judge(w.life.misfortune.calls.Load(), method+subject(in))
	}
	if v == before {
		return status.Errorf(codes.Internal, "%s failed before it did anything", method)
	}
	got := reflect.ValueOf(to).MethodByName(method).Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(in)})
	if err, _ := got[1].Interface().(error); err != nil {
		return err
	}
	if r, ok := in.(*runtimeapi.StartContainerRequest); ok {
		w.begun(r.GetContainerId())
	}
	if v == after {
		return status.Errorf(codes.Unknown, "%s was done, and its answer lost", method)
	}
	proto.Merge(out.(proto.Message), got[0].Interface().(proto.Message))
	return nil
}

// NewStream implements grpc.ClientConnInterface. The one stream that is used goes past it: see [wire.client].
func (w *wire) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Error(codes.Unimplemented, "no stream here")
}

func (w *wire) client() *cri.Client {
	return cri.New(events{runtimeapi.NewRuntimeServiceClient(w), w.truth.Runtime}, runtimeapi.NewImageServiceClient(w))
}

// events takes the runtime's events from the fake itself.
type events struct {
	runtimeapi.RuntimeServiceClient
	truth runtimeapi.RuntimeServiceClient
}

// GetContainerEvents implements runtimeapi.RuntimeServiceClient.
func (e events) GetContainerEvents(ctx context.Context, in *runtimeapi.GetEventsRequest, opts ...grpc.CallOption) (
	grpc.ServerStreamingClient[runtimeapi.ContainerEventResponse], error,
) {
	return e.truth.GetContainerEvents(ctx, in, opts...)
}

// changes says whether a call does something.
func changes(method string) bool {
	for _, start := range []string{"Run", "Create", "Start", "Stop", "Remove", "Pull"} {
		if strings.HasPrefix(method, start) {
			return true
		}
	}
	return false
}

// subject names what a call is about, alike in every run.
func subject(in any) string {
	switch r := in.(type) {
	case *runtimeapi.RunPodSandboxRequest:
		return r.GetConfig().GetMetadata().GetName()
	case *runtimeapi.CreateContainerRequest:
		return r.GetSandboxConfig().GetMetadata().GetName() + "/" + r.GetConfig().GetMetadata().GetName()
	case *runtimeapi.PullImageRequest:
		return r.GetImage().GetImage()
	}
	return ""
}
