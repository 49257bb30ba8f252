// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestStoreGivesUp proves RS-02: should etcd give up on a full disk all the same, here as somebody writes past the API, the server starts again
// in the same process, as soon as there is room.
func TestStoreGivesUp(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	k := inDefault(t, onSmallDisk(t, "1200m"))
	pid := k.Server.PID()
	fill := filepath.Join(filepath.Dir(k.DataDir), "fill")
	f, err := os.Create(fill)
	if err != nil {
		t.Fatal(err)
	}
	for _, err = f.Write(make([]byte, 1<<20)); err == nil; _, err = f.Write(make([]byte, 1<<20)) {
	}
	f.Close()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + k.DataDir + "/etcd/client.sock"}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	value := make([]byte, 1<<20)
	for i := 0; i < 300 && !strings.Contains(k.Log(), "starting again"); i++ {
		_, _ = rand.Read(value)
		if _, err := c.Put(t.Context(), fmt.Sprint("/other/", i), string(value)); err != nil {
			t.Log(i, err)
			break
		}
	}
	until := time.Now().Add(Timeout)
	back := func() bool { return strings.Count(k.Log(), "server is ready") >= 2 }
	for ; !strings.Contains(k.Log(), "waiting until there is room") && !back(); time.Sleep(100 * time.Millisecond) {
		if k.gone() || time.Now().After(until) {
			t.Fatalf("the server does not wait for room:\n%s", k.LogTail(30))
		}
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	for ; !back(); time.Sleep(100 * time.Millisecond) {
		if k.gone() || time.Now().After(until) {
			t.Fatalf("the server has not come back:\n%s", k.LogTail(30))
		}
	}
	if k.gone() || k.Server.PID() != pid {
		t.Error("it is another process")
	}
	if err := k.Server.connect(); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}
