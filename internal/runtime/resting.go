// SPDX-License-Identifier: Apache-2.0

package runtime

// garbagePause is the share of its time that containerd collects garbage at most. Its own, 0.02, has it look four times
// a second whether there is any, for ever. What removes an image waits for a collection of its own, so that only
// leftovers of images stay for two seconds longer.
const garbagePause = 0.002

// resting has containerd do little while nothing happens.
func (s settings) resting() settings {
	s["io.containerd.gc.v1.scheduler"] = map[string]any{"pause_threshold": garbagePause}
	return s
}
