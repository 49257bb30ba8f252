// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"
	"time"

	"github.com/wherryproject/wherry/internal/store"
	"github.com/wherryproject/wherry/test/simulate/disk"
)

// harm is one misfortune of the disk.
func (w *world) harm() {
	switch w.rng.IntN(8) {
	case 0, 1:
		w.kill(powerEnds)
		w.reboot()
	case 2, 3:
		w.powerEndsInAWrite()
	case 4:
		file := []string{".wal", "db"}[w.rng.IntN(2)]
		w.suffer(disk.Faults{SyncFails: file}, store.ErrDiskFailed)
	case 5:
		w.suffer(disk.Faults{SyncTakes: time.Duration(w.rng.IntN(2000)) * time.Microsecond}, nil)
	case 6:
		w.fill()
	case 7:
		w.blind()
	}
}

// fail has the disk fail from now on.
func (w *world) fail(f disk.Faults) { w.trust(w.disk.Fail(f, w.rng.Uint64())) }

// nap is up to a time long.
func (w *world) nap(most time.Duration) { time.Sleep(1 + time.Duration(w.rng.Int64N(int64(most)))) }

// reboot starts the machine, whose power has ended.
func (w *world) reboot() {
	w.fake.PowerCycle()
	w.nap(20 * time.Second)
	w.boot()
}

// powerEndsInAWrite ends the power while somebody works: the world's time stands still meanwhile, so that nobody can choose that moment by it.
func (w *world) powerEndsInAWrite() {
	w.fail(disk.Faults{PowerEnds: 1 + w.rng.IntN(300), Loss: w.loss()})
	for range 300 {
		if w.dead() != nil {
			w.kill(processEnds) // its disk is as it was when the power ended
			w.reboot()
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.kill(powerEnds) // that was too long
	w.reboot()
}

// suffer has the disk fail for a while. If the server ends by it, it says why, and the next one starts when the disk works again.
func (w *world) suffer(f disk.Faults, why error) {
	w.fail(f)
	w.nap(40 * time.Second)
	w.heal(why)
}

// heal has the disk work again, and the server run.
func (w *world) heal(why error) {
	w.fail(disk.Faults{})
	time.Sleep(time.Second) // what has just failed ends the server yet
	if w.ended(why) {
		w.boot()
	}
}

// ended tells whether the server has ended by itself, which it may for one reason only, and clears up after it.
func (w *world) ended(why error) bool {
	err := w.dead()
	if err == nil {
		return false
	}
	if (why == nil || !errors.Is(err, why)) && !w.heardLate(err) {
		w.judge.fault("the server ended with: %v, where only this may end it: %v", err, why)
	}
	w.kill(processEnds)
	return true
}

// heardLate tells whether the server ended as its disk had been full. That may be long after: when etcd could not lay out the next file of
// its log ahead of time, it hears of it when it needs the file.
func (w *world) heardLate(err error) bool { return w.wasFull && errors.Is(err, store.ErrDiskFull) }

// again starts a server again that has ended so, as it does itself.
func (w *world) again() {
	if w.heardLate(w.dead()) {
		w.kill(processEnds)
		w.boot()
	}
}

// calm is a time without misfortune.
func (w *world) calm(d time.Duration) {
	for ; d > 0; d -= time.Second {
		time.Sleep(time.Second)
		w.again()
	}
}

// fill fills the disk. The server can be started while it is full (RS-02).
func (w *world) fill() {
	full := disk.Faults{Full: true}
	w.wasFull = true
	w.fail(full)
	w.nap(time.Minute)
	if !w.ended(store.ErrDiskFull) {
		if w.rng.IntN(2) == 0 {
			w.heal(store.ErrDiskFull)
			return
		}
		w.kill(processEnds)
	}
	w.fail(full)
	if err := w.start(); err != nil {
		if !errors.Is(err, store.ErrDiskFull) { // a start needs room if etcd's log just has to begin a new file
			w.judge.fault("the server does not start on a full disk: %v", err)
		}
		w.fail(disk.Faults{})
		w.boot()
		return
	}
	w.nap(time.Minute)
	w.heal(store.ErrDiskFull)
}

// blind has a server start on a disk that cannot be read: it must not take its store for damaged (RS-07).
func (w *world) blind() {
	w.kill(processEnds)
	w.fail(disk.Faults{ReadFails: []string{".wal", "db"}[w.rng.IntN(2)]})
	w.apart = true
	err := w.start()
	w.apart = false
	if !errors.Is(err, store.ErrDiskFailed) {
		w.judge.fault("the disk cannot be read, and the start says: %v", err)
	}
	if err != nil {
		w.boot()
	}
}
