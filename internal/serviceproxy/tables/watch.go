// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"context"

	"github.com/wherryproject/wherry/internal/netfilter"
)

// Watch signals when another process has changed our table, by a token in the channel that it returns, until ctx ends.
// When no notice can be received any more, an error comes from the other channel.
func (h Host) Watch(ctx context.Context) (<-chan struct{}, <-chan error, error) {
	return netfilter.Watch(ctx, h.Name())
}
