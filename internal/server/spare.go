// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"github.com/wherryproject/wherry/internal/spare"
)

// startSpare has memory be given back whenever the server is quiet.
func (s *Server) startSpare(context.Context) error {
	s.parts.spare = spawn("spare", s.failed, func(ctx context.Context) error { return spare.Run(ctx, s.log) })
	return nil
}

func (s *Server) stopSpare(ctx context.Context) error { return s.parts.spare.stop(ctx) }
