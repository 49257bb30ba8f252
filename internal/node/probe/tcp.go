// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// tcpSocket opens a connection and closes it.
func (p *Prober) tcpSocket(ctx context.Context, t Target, a *corev1.TCPSocketAction,
	timeout time.Duration) (Result, error) {
	address, err := t.Address(a.Host, a.Port)
	if err != nil {
		return Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := p.dial(ctx, "tcp", address)
	if err != nil {
		return failed("%v", err), nil
	}
	_ = conn.Close() // it was open, that is all that was asked
	return Result{Verdict: Success}, nil
}
