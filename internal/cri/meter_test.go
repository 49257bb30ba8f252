// SPDX-License-Identifier: Apache-2.0

package cri_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
)

// A metered client reports each call with how it ended; the checks of a client hold on it too (PID-09).
func TestMetered(t *testing.T) {
	f := newFake()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, err := cri.Dial(ctx, listen(t, func(s *grpc.Server) {
		runtimeapi.RegisterRuntimeServiceServer(s, f)
		runtimeapi.RegisterImageServiceServer(s, f)
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var calls []string
	m := c.Metered(func(method string, took time.Duration, err error) {
		if took <= 0 {
			t.Errorf("%s took %v", method, took)
		}
		if err != nil {
			method += " failed"
		}
		calls = append(calls, method)
	})
	if _, err := m.Version(ctx); err != nil {
		t.Error(err)
	}
	if _, err := m.Images.ListImages(ctx, &runtimeapi.ListImagesRequest{}); err != nil {
		t.Error(err)
	}
	if _, err := m.Runtime.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: "none"}); err == nil {
		t.Error("a container that is not there was started")
	}
	target := &runtimeapi.PodSandboxConfig{Linux: &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
		NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_TARGET}}}}
	if _, err := m.Runtime.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: target}); err == nil {
		t.Error("a sandbox was made in another's process namespace")
	}
	if _, err := c.Version(ctx); err != nil {
		t.Error(err)
	}
	want := []string{"/runtime.v1.RuntimeService/Version", "/runtime.v1.ImageService/ListImages", "/runtime.v1.RuntimeService/StartContainer failed"}
	if !slices.Equal(calls, want) {
		t.Errorf("reported %v, want %v", calls, want)
	}
	direct := cri.New(c.Runtime, c.Images)
	if direct.Metered(nil) != direct {
		t.Error("a client without a connection cannot be metered, and is to be left as it is")
	}
}
