// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"maps"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// pollEvery is how late a nudge may be from a runtime without events.
const pollEvery = time.Second

// poll compares the runtime's lists every second and nudges the pods that changed. It returns the error of the first
// list that fails.
func (c *Client) poll(ctx context.Context, box *mailbox) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var before map[string]podStates
	for {
		now, err := c.states(ctx)
		if err != nil {
			return err
		}
		if before == nil {
			box.everything()
		} else {
			for _, uid := range changed(before, now) {
				box.pod(uid)
			}
		}
		before = now
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// podStates is the state of each sandbox and container of a pod, by id.
type podStates map[string]int32

func (c *Client) states(ctx context.Context) (map[string]podStates, error) {
	containers, err := c.Runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return nil, err
	}
	sandboxes, err := c.Runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return nil, err
	}
	all := map[string]podStates{}
	note := func(uid, id string, state int32) {
		if uid == "" {
			return
		}
		if all[uid] == nil {
			all[uid] = podStates{}
		}
		all[uid][id] = state
	}
	for _, s := range sandboxes.GetItems() {
		note(s.GetLabels()[LabelPodUID], s.GetId(), int32(s.GetState()))
	}
	for _, ctr := range containers.GetContainers() {
		note(ctr.GetLabels()[LabelPodUID], ctr.GetId(), int32(ctr.GetState()))
	}
	return all, nil
}

// changed gives the pods that are new, gone, or different.
func changed(before, now map[string]podStates) []string {
	var out []string
	for uid, was := range before {
		if !maps.Equal(was, now[uid]) {
			out = append(out, uid)
		}
	}
	for uid := range now {
		if _, ok := before[uid]; !ok {
			out = append(out, uid)
		}
	}
	return out
}
