// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// External says how an etcd of somebody else is reached.
type External struct {
	Servers                   []string // https://host:2379
	CAFile, CertFile, KeyFile string   // may be empty
}

// Await returns when one of the servers answers; if none does until ctx ends, its error says what each of them answered
// last.
func (x External) Await(ctx context.Context) error {
	config := clientv3.Config{Endpoints: x.Servers, DialTimeout: 5 * time.Second, Logger: zap.NewNop(), Context: ctx}
	if x.CAFile != "" || x.CertFile != "" {
		files := transport.TLSInfo{TrustedCAFile: x.CAFile, CertFile: x.CertFile, KeyFile: x.KeyFile}
		tls, err := files.ClientConfig()
		if err != nil {
			return fmt.Errorf("etcd's certificates: %w", err)
		}
		config.TLS = tls
	}
	client, err := clientv3.New(config)
	if err != nil {
		return fmt.Errorf("etcd at %s: %w", strings.Join(x.Servers, ", "), err)
	}
	defer client.Close()
	last := make([]error, len(x.Servers))
	for {
		for i, server := range x.Servers {
			err := status(ctx, client, server)
			if err == nil {
				return nil
			}
			if ctx.Err() == nil || last[i] == nil {
				last[i] = fmt.Errorf("etcd at %s does not answer: %w", server, err)
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(last...)
		case <-time.After(200 * time.Millisecond): // a server that is away sends no event when it comes back
		}
	}
}

func status(ctx context.Context, client *clientv3.Client, server string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	_, err := client.Status(ctx, server)
	return err
}
