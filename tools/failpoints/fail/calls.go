// SPDX-License-Identifier: Apache-2.0

package fail

import (
	"context"
	"path"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Calls makes a failpoint of every call of the container runtime.
func Calls() grpc.DialOption { return grpc.WithChainUnaryInterceptor(intercept) }

func intercept(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption) error {
	if dir() == "" || !slices.Contains([]string{"runtime.v1.RuntimeService", "runtime.v1.ImageService"},
		path.Base(path.Dir(method))) {
		return invoke(ctx, method, req, reply, conn, opts...)
	}
	place := "cri." + path.Base(method)
	what := pass(place)
	switch what {
	case "before":
		die()
	case "error":
		return status.Error(codes.Unknown, failure(place).Error())
	}
	err := invoke(ctx, method, req, reply, conn, opts...)
	switch what {
	case "die", "torn":
		die()
	case "lost":
		return status.Error(codes.Unavailable, failure(place).Error())
	}
	return err
}
