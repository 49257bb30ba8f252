// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy/adapter"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

// Client is a client of the store in the same process, for keys, leases and watches: its requests are calls of
// functions, its watches channels. No connection stands between both, of which the API server would have one for each
// kind, with four goroutines and two buffers at each end. Its watches end with the store at the latest.
func (e *Etcd) Client() *clientv3.Client {
	s := e.server.Server
	c := clientv3.NewCtxClient(context.Background(), clientv3.WithZapLogger(s.Logger()))
	c.KV = clientv3.NewKVFromKVClient(adapter.KvServerToKvClient(calls{v3rpc.NewQuotaKVServer(s), e}), c)
	c.Lease = clientv3.NewLeaseFromLeaseClient(adapter.LeaseServerToLeaseClient(v3rpc.NewQuotaLeaseServer(s)), c,
		time.Second)
	c.Maintenance = clientv3.NewMaintenanceFromMaintenanceClient(
		adapter.MaintenanceServerToMaintenanceClient(v3rpc.NewMaintenanceServer(s, nil)), c)
	c.Watcher = newWatcher(s.Watchable(), e.reading, e.pulse.stir)
	e.clients.add(c)
	return c
}

// calls are requests by the same process: each is done in reading, as those that come by the socket are, and those that
// write stir the pulse.
type calls struct {
	pb.KVServer
	etcd *Etcd
}

func (c calls) Range(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	return call(c.etcd, func() (*pb.RangeResponse, error) { return c.KVServer.Range(ctx, r) })
}

func (c calls) Put(ctx context.Context, r *pb.PutRequest) (*pb.PutResponse, error) {
	defer c.etcd.pulse.stir()
	return call(c.etcd, func() (*pb.PutResponse, error) { return c.KVServer.Put(ctx, r) })
}

func (c calls) DeleteRange(ctx context.Context, r *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	defer c.etcd.pulse.stir()
	return call(c.etcd, func() (*pb.DeleteRangeResponse, error) { return c.KVServer.DeleteRange(ctx, r) })
}

func (c calls) Txn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	defer c.etcd.pulse.stir()
	return call(c.etcd, func() (*pb.TxnResponse, error) { return c.KVServer.Txn(ctx, r) })
}

func (c calls) Compact(ctx context.Context, r *pb.CompactionRequest) (*pb.CompactionResponse, error) {
	defer c.etcd.pulse.stir()
	return call(c.etcd, func() (*pb.CompactionResponse, error) { return c.KVServer.Compact(ctx, r) })
}

func call[T any](e *Etcd, do func() (*T, error)) (answer *T, err error) {
	if why := e.reading(func() { answer, err = do() }); why != nil {
		return nil, grpcstatus.Error(codes.Internal, why.Error())
	}
	return answer, err
}

// clients are those that were handed out.
type clients struct {
	mu  sync.Mutex
	all []*clientv3.Client
}

func (c *clients) add(client *clientv3.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, client)
}

// close ends their watches: nobody reads from a store that is being closed.
func (c *clients) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, client := range c.all {
		_ = client.Watcher.Close() // it has no errors
	}
	c.all = nil
}
