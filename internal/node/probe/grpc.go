// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// maxHealth bounds the answer of a health service, which is a few bytes.
const maxHealth = 64 << 10

// grpc asks the health service (grpc.health.v1) for the state of a service, in clear text.
func (p *Prober) grpc(ctx context.Context, t Target, a *corev1.GRPCAction, timeout time.Duration) (Result, error) {
	address, err := t.Address("", intstr.FromInt32(a.Port))
	if err != nil {
		return Result{}, err
	}
	service := ""
	if a.Service != nil {
		service = *a.Service
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	// We connect ourselves: gRPC would try again until the time is over, and then not say why.
	conn, err := p.dial(ctx, "tcp", address)
	if err != nil {
		if ctx.Err() != nil {
			return failed("timeout: failed to connect service %q within %s: %v", address, timeout, err), nil
		}
		return failed("error: failed to connect service at %q: %v", address, err), nil
	}
	defer func() { _ = conn.Close() }()
	client, err := grpcOver(conn, address, credentialsOf(a))
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = client.Close() }()
	answer, err := grpc_health_v1.NewHealthClient(client).Check(ctx,
		&grpc_health_v1.HealthCheckRequest{Service: service})
	return healthResult(answer, err, timeout), nil
}

// credentialsOf are those of the mode that a probe asks for: with TLS the certificate is not checked, it is the
// application's own (KEP-5821).
func credentialsOf(a *corev1.GRPCAction) credentials.TransportCredentials {
	if a.Mode != nil && *a.Mode == corev1.GRPCProbeModeTLS {
		return credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}) //nolint:gosec // Kubernetes' contract
	}
	return insecure.NewCredentials()
}

// grpcOver makes a client that lives and dies with one connection.
func grpcOver(conn net.Conn, address string, by credentials.TransportCredentials) (*grpc.ClientConn, error) {
	first := make(chan net.Conn, 1)
	first <- conn
	return grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(by),
		grpc.WithUserAgent(userAgent),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxHealth)),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			select {
			case c := <-first:
				return c, nil
			default:
				return nil, errors.New("the server closed the connection")
			}
		}),
	)
}

// healthResult says what a health check's answer means. (Pure.)
func healthResult(answer *grpc_health_v1.HealthCheckResponse, err error, timeout time.Duration) Result {
	switch s := status.Convert(err); {
	case s.Code() == codes.Unimplemented:
		return failed("error: this server does not implement the grpc health protocol (grpc.health.v1.Health): %s",
			s.Message())
	case s.Code() == codes.DeadlineExceeded:
		return failed("timeout: health rpc did not complete within %s", timeout)
	case err != nil:
		return failed("error: health rpc probe failed: %v", err)
	case answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING:
		return failed("service unhealthy (responded with %q)", answer.GetStatus().String())
	}
	return Result{Verdict: Success, Message: "service healthy"}
}
