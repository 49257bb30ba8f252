// SPDX-License-Identifier: Apache-2.0

package hostdebug

import (
	"context"
	"fmt"
	"io"

	"github.com/wherryproject/wherry/internal/hostdebug/engines"
	"github.com/wherryproject/wherry/internal/hostdebug/engines/byrpc"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
)

// Engine is the engine of a kind. The caller closes it.
func Engine(ctx context.Context, kind target.Engine, o engines.Options) (engines.Engine, func() error, error) {
	var e interface {
		engines.Engine
		io.Closer
	}
	var err error
	switch kind {
	case target.Containerd:
		e, err = byrpc.NewContainerd(ctx, o)
	case target.CRI:
		e, err = byrpc.NewCRI(ctx, o)
	default:
		there := o
		there.Address = "" // that is Docker's
		o.Snapshots = byrpc.Snapshots(there)
		plain, err := engines.Of(ctx, kind, o)
		return plain, func() error { return nil }, err
	}
	if err != nil {
		return nil, nil, err
	}
	return e, e.Close, nil
}

// Find asks for one target.
func Find(ctx context.Context, t target.Target, o engines.Options) (*engines.Container, error) {
	e, done, err := Engine(ctx, t.Engine, o)
	if err != nil {
		return nil, err
	}
	c, err := e.Find(ctx, t)
	if cerr := done(); err == nil && cerr != nil {
		err = cerr
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	return c, nil
}
