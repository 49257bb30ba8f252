// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"net"

	clientv3 "go.etcd.io/etcd/client/v3"
	etcdkubernetes "go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"

	"github.com/wherryproject/wherry/internal/socketpair"
)

// Inside are connections of a server that reaches everything within its own process. A simulation needs it: in a bubble
// of testing/synctest, time stands still while anything waits for a socket.
type Inside struct {
	Etcd     *clientv3.Client     // in place of Config.EtcdServers; not closed by the server
	Listener net.Listener         // in place of Config.BindAddress and SecurePort
	Loopback *socketpair.Listener // what Server.Loopback dials
}

// openInside is what [factory.Create] is for an etcd somewhere else: but for connections, and a compactor.
func (b *Backend) openInside(c *storagebackend.ConfigForResource, newFunc, newListFunc func() runtime.Object,
	prefix string) (
	storage.Interface, factory.DestroyFunc, error,
) {
	client := &etcdkubernetes.Client{Client: b.Etcd}
	client.Kubernetes = client
	versioner := storage.APIObjectVersioner{}
	s, err := etcd3.New(client, nil, c.Codec, newFunc, newListFunc, c.Prefix, prefix, c.GroupResource,
		identity.NewEncryptCheckTransformer(), c.LeaseManagerConfig, etcd3.NewDefaultDecoder(c.Codec, versioner),
		versioner)
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

// HealthInside asks the store for one key.
func (b *Backend) HealthInside() error {
	ctx, cancel := context.WithTimeout(context.Background(), storagebackend.DefaultHealthcheckTimeout)
	defer cancel()
	if _, err := b.Etcd.Get(ctx, b.Config.Prefix+"/health"); err != nil {
		return fmt.Errorf("etcd does not answer: %w", err)
	}
	return nil
}
