// SPDX-License-Identifier: Apache-2.0

package podresources

import (
	"slices"
	"testing"

	"google.golang.org/grpc"
	"k8s.io/kubelet/pkg/apis/podresources/v1alpha1"
)

// PL-34: monitoring that knows v1alpha1 alone is answered at the same socket.
func TestAnswersAlpha(t *testing.T) {
	conn, _ := serve(t)
	list, err := v1alpha1.NewPodResourcesListerClient(conn).List(t.Context(), &v1alpha1.ListPodResourcesRequest{},
		grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	pods := list.GetPodResources()
	if len(pods) != 2 || pods[0].GetNamespace() != "a" || pods[0].GetName() != "gpu" || pods[1].GetName() != "plain" {
		t.Fatalf("pods %v", pods)
	}
	c := pods[0].GetContainers()
	if len(c) != 2 || c[0].GetName() != "side" || len(c[0].GetDevices()) > 0 || c[1].GetName() != "m" ||
		len(c[1].GetDevices()) != 1 {
		t.Fatalf("containers %v", c)
	}
	if d := c[1].GetDevices()[0]; d.GetResourceName() != "v.example/x" || !slices.Equal(d.GetDeviceIds(), []string{"0"}) {
		t.Errorf("devices %v", d)
	}
}
