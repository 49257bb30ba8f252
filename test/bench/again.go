// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// agentRestart: the server is killed under running pods and started again; from the start of its process until its
// agent has observed every pod. No pod may have been touched: not its containers, not its status, not even its resource
// version.
func (b *bench) agentRestart(ctx context.Context) ([]result, error) {
	uids, err := b.createMany(ctx, "again")
	if err != nil {
		return nil, err
	}
	if _, err := b.api.awaitRunning(ctx, uids...); err != nil {
		return nil, err
	}
	if err := sleep(ctx, 2*time.Second); err != nil { // what was told late, such as an address, is stored by then
		return nil, err
	}
	took := samples{}
	for range b.n {
		before, err := versions(ctx, b.api.client)
		if err != nil {
			return nil, err
		}
		if err := b.restartServer(ctx); err != nil {
			return nil, err
		}
		err = b.server.poll(ctx, "the agent's sight of all pods", 10*time.Millisecond,
			func() bool { return b.observed(ctx) >= b.pods })
		if err != nil {
			return nil, err
		}
		took["again"] = append(took["again"], time.Since(b.server.begun))
		if err := sleep(ctx, 2*time.Second); err != nil { // a status that it would change it has changed by then
			return nil, err
		}
		after, err := versions(ctx, b.api.client)
		if err != nil {
			return nil, err
		}
		if !slices.Equal(before, after) {
			return nil, fmt.Errorf("pods were changed by a restart of the agent: before %v, after %v", before, after)
		}
	}
	if _, err := b.deleteMany(ctx, "again", uids); err != nil {
		return nil, err
	}
	return []result{{What: fmt.Sprintf("server killed and started again under %d running pods → all observed, no status changed", b.pods),
		Figure: took.median("again"), Limit: 3 * time.Second}}, b.bare.nothingLeft(ctx)
}

// restartServer kills the shared server and starts it on the same folder.
func (b *bench) restartServer(ctx context.Context) (err error) {
	err = b.disconnect()
	old := b.server
	err = errors.Join(err, old.cmd.Process.Signal(syscall.SIGKILL))
	<-old.exited
	err = errors.Join(err, old.log.Close())
	if err != nil {
		return err
	}
	if b.server, err = startServer(ctx, b.settings, filepath.Join(b.dir, "data")); err != nil {
		return err
	}
	if err := b.server.ready(ctx); err != nil {
		return err
	}
	return b.connect(ctx)
}

// observed is how many containers the agent says that it sees running.
func (b *bench) observed(ctx context.Context) (n int) {
	nodes, err := b.api.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil || len(nodes.Items) == 0 {
		return 0
	}
	text,
		err := b.api.client.CoreV1().RESTClient().Get().Resource("nodes").Name(nodes.Items[0].Name).SubResource("proxy",
		"metrics").Do(ctx).Raw()
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, `kubelet_running_containers{container_state="running"} `); ok {
			_, _ = fmt.Sscan(value, &n) // 0 is none
		}
	}
	return n
}

// versions are the resource versions of all pods, by name.
func versions(ctx context.Context, client kubernetes.Interface) (all []string, err error) {
	list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		all = append(all, list.Items[i].Name+"@"+list.Items[i].ResourceVersion)
	}
	slices.Sort(all)
	return all, nil
}
