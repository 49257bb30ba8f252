// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wherryproject/wherry/internal/names/asked"
	"github.com/wherryproject/wherry/internal/timeline"
)

// Bounds of one pod's history. When one is reached, what repeats is folded.
const (
	MaxMoments = 1000
	MaxBytes   = 128 << 10
	maxText    = 400 // of one message, in bytes
)

// Bounds of what is kept of pods that are gone: the newest so many, and none for longer than this.
const (
	KeepGone = 200
	KeepFor  = time.Hour
)

// Config is what a Recorder works with.
type Config struct {
	Dir    string                // holds one file per pod; made if it is not there
	Node   string                // this node's name
	Has    func(uid string) bool // reports whether a pod is still on the node; nil: all are
	Logger *slog.Logger
	// Names are those that a pod has looked up; the error says why nobody knows. nil: nobody does.
	Names func(ctx context.Context, uid string) ([]asked.Asked, error)
}

// Recorder keeps the histories of a node's pods. Its methods are safe for concurrent use and do not block. Until Run is
// called it keeps them in memory only.
type Recorder struct {
	cfg Config
	dir folder

	mu     sync.Mutex
	pods   map[string]*record
	signal chan struct{} // holds one token while there is something to write
}

// record is one pod's.
type record struct {
	h       timeline.History
	next    int // number of the next moment
	sizes   map[int]int
	bytes   int
	dirty   []int // numbers of moments that are not in the file yet, in order
	meta    bool  // nor is who the pod is, or that it is gone
	rewrite bool  // the file is to be written anew: moments were folded
	facts   map[fact]int
	ready   map[uint32]bool // sandboxes seen ready, by attempt
	listens chan struct{}   // closed at the next change
	removed bool            // from the API server
	left    bool            // the node
	goneAt  time.Time
}

// New reads what an earlier agent kept. What it was doing when it died is marked as cut off at now.
func New(c Config, now time.Time) (*Recorder, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Recorder{cfg: c, dir: folder(c.Dir), pods: map[string]*record{}, signal: make(chan struct{}, 1)}
	all, err := r.dir.load()
	for _, h := range all {
		r.pods[h.UID] = restored(h, now)
	}
	return r, err
}

func newRecord(pod timeline.Pod) *record {
	return &record{h: timeline.History{Pod: pod}, sizes: map[int]int{}, facts: map[fact]int{}, ready: map[uint32]bool{},
		meta: true}
}

func restored(h timeline.History, now time.Time) *record {
	p := newRecord(h.Pod)
	p.meta, p.h.Gone = false, h.Gone
	last := time.Time{}
	for _, m := range h.Moments {
		p.h.Moments = append(p.h.Moments, m)
		p.next = max(p.next, m.Seq+1)
		p.weigh(&m)
		p.facts[factOf(&m)] = m.Seq
		p.removed = p.removed || m.What == timeline.Removed
		p.left = p.left || m.What == timeline.Left
		last = m.At
	}
	if h.Gone {
		p.goneAt = last
		return p
	}
	p.rewrite = true // its last line may have been cut off, and what is appended to that would be lost
	p.add(timeline.Moment{At: now, What: timeline.Agent})
	return p
}

// weigh counts what a moment takes.
func (p *record) weigh(m *timeline.Moment) {
	data, err := json.Marshal(m)
	if err != nil {
		return
	}
	p.bytes += len(data) - p.sizes[m.Seq]
	p.sizes[m.Seq] = len(data)
}

// add appends a moment, or counts it if it repeats the last one of its kind.
func (p *record) add(m timeline.Moment) {
	m.Text = shorten(m.Text)
	if i, again := p.repeats(&m); again {
		old := &p.h.Moments[i]
		old.Times = max(old.Times, 1) + 1
		old.Last = m.At
		p.weigh(old)
		if old.Times&(old.Times-1) == 0 { // each doubling is worth a line in the file
			p.touch(old.Seq)
		}
		p.wake()
		return
	}
	m.Seq = p.next
	p.next++
	p.h.Moments = append(p.h.Moments, m)
	p.facts[factOf(&m)] = m.Seq
	p.weigh(&m)
	p.touch(m.Seq)
	p.fold()
	p.wake()
}

func (p *record) touch(seq int) {
	if !slices.Contains(p.dirty, seq) {
		p.dirty = append(p.dirty, seq)
	}
}

// fold keeps the record within its bounds.
func (p *record) fold() {
	for len(p.h.Moments) > MaxMoments || p.bytes > MaxBytes*9/10 {
		kept, _ := timeline.Fold(p.h.Moments, min(len(p.h.Moments), MaxMoments)*9/10)
		if len(kept) >= len(p.h.Moments) {
			return // nothing is left that could go
		}
		p.h.Moments, p.bytes, p.sizes, p.rewrite = kept, 0, map[int]int{}, true
		p.facts = map[fact]int{}
		for i := range kept {
			p.weigh(&kept[i])
			p.facts[factOf(&kept[i])] = kept[i].Seq
		}
	}
}

// wake wakes those who follow the pod.
func (p *record) wake() {
	if p.listens != nil {
		close(p.listens)
		p.listens = nil
	}
}

// change returns a channel that is closed at the next change.
func (p *record) change() <-chan struct{} {
	if p.listens == nil {
		p.listens = make(chan struct{})
	}
	return p.listens
}

// snapshot copies the history as it is now.
func (p *record) snapshot(now time.Time) timeline.History {
	h := p.h
	h.Moments = slices.Clone(h.Moments)
	h.Containers = slices.Clone(h.Containers)
	h.Now = now
	return h
}

// with calls f on a pod's record with the lock held, and has the change written.
func (r *Recorder) with(pod timeline.Pod, f func(*record)) {
	r.mu.Lock()
	p := r.pods[pod.UID]
	if p == nil {
		p = newRecord(pod)
		p.h.Node = r.cfg.Node
		r.pods[pod.UID] = p
	}
	f(p)
	r.mu.Unlock()
	select {
	case r.signal <- struct{}{}:
	default:
	}
}

func (r *Recorder) knows(uid string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pods[uid] != nil
}

// Run writes what it has recorded until ctx ends, then the rest.
func (r *Recorder) Run(ctx context.Context) {
	sweep := time.NewTicker(time.Minute)
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			r.write()
			return
		case <-r.signal:
			r.write()
		case now := <-sweep.C:
			r.Sweep(now)
		}
	}
}

// job is what is to be written of one pod.
type job struct {
	uid  string
	data []byte
	anew bool
}

// write brings the files up to date. Only Run calls it.
func (r *Recorder) write() {
	r.mu.Lock()
	var jobs []job
	for uid, p := range r.pods {
		if j, ok := p.job(uid); ok {
			jobs = append(jobs, j)
		}
	}
	r.mu.Unlock()
	for _, j := range jobs {
		if err := r.save(j); err != nil {
			r.cfg.Logger.Warn("cannot write the history of a pod", "uid", j.uid, "err", err)
		}
	}
}

func (p *record) job(uid string) (job, bool) {
	if len(p.dirty) == 0 && !p.meta && !p.rewrite {
		return job{}, false
	}
	j := job{uid: uid, anew: p.rewrite}
	if p.rewrite {
		j.data = whole(&p.h)
	} else {
		var b bytes.Buffer
		if p.meta {
			encode(&b, line{Pod: &p.h.Pod, Gone: p.h.Gone})
		}
		for _, seq := range p.dirty {
			if i, ok := p.find(seq); ok {
				encode(&b, line{Moment: &p.h.Moments[i]})
			}
		}
		j.data = b.Bytes()
	}
	p.dirty, p.meta, p.rewrite = nil, false, false
	return j, true
}

func (p *record) find(seq int) (int, bool) {
	return slices.BinarySearchFunc(p.h.Moments, seq, func(m timeline.Moment,
		seq int) int {
		return cmp.Compare(m.Seq, seq)
	})
}

// save writes one pod's job. A file that has grown over its bound by moments that count again is written anew next
// time.
func (r *Recorder) save(j job) error {
	if j.anew {
		return r.dir.replace(j.uid, j.data)
	}
	size, err := r.dir.add(j.uid, j.data)
	if err != nil || size <= MaxBytes {
		return err
	}
	r.mu.Lock()
	p := r.pods[j.uid]
	var data []byte
	if p != nil {
		data = whole(&p.h)
	}
	r.mu.Unlock()
	if p == nil {
		return nil
	}
	return r.dir.replace(j.uid, data)
}

// Sweep drops histories of pods that are long gone, and takes note of pods that went while no agent ran.
func (r *Recorder) Sweep(now time.Time) {
	r.mu.Lock()
	var gone []*record
	for uid, p := range r.pods {
		if !p.h.Gone && p.goneAt.IsZero() && r.cfg.Has != nil && !r.cfg.Has(uid) {
			p.goneAt = now // for good if nobody speaks of it until the next sweep
		} else if !p.h.Gone && !p.goneAt.IsZero() {
			if r.cfg.Has(uid) {
				p.goneAt = time.Time{}
			} else {
				p.end(now)
			}
		}
		if p.h.Gone {
			gone = append(gone, p)
		}
	}
	slices.SortFunc(gone, func(a, b *record) int { return b.goneAt.Compare(a.goneAt) })
	var drop []string
	for i, p := range gone {
		if i >= KeepGone || now.Sub(p.goneAt) > KeepFor {
			delete(r.pods, p.h.UID)
			drop = append(drop, p.h.UID)
		}
	}
	r.mu.Unlock()
	r.write()
	for _, uid := range drop {
		if err := r.dir.remove(uid); err != nil {
			r.cfg.Logger.Warn("cannot remove the history of a deleted pod", "uid", uid, "err", err)
		}
	}
}

// end closes a record.
func (p *record) end(now time.Time) {
	p.h.Gone, p.meta, p.goneAt = true, true, now
	p.wake()
}

// Find returns the newest history of a pod of that name; one that is on the node comes before those that are gone. With
// a uid it is that very pod's. Changed is closed when there is more.
func (r *Recorder) Find(namespace, name, uid string,
	now time.Time) (h timeline.History, changed <-chan struct{}, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var best *record
	for _, p := range r.pods {
		if p.h.Namespace != namespace || p.h.Name != name || uid != "" && p.h.UID != uid {
			continue
		}
		if best == nil || best.h.Gone && !p.h.Gone || best.h.Gone == p.h.Gone && p.began().After(best.began()) {
			best = p
		}
	}
	if best == nil {
		return timeline.History{}, nil, false
	}
	return best.snapshot(now), best.change(), true
}

func (p *record) began() time.Time {
	if len(p.h.Moments) == 0 {
		return time.Time{}
	}
	return p.h.Moments[0].At
}

// shorten cuts a message to what a timeline shows of it.
func shorten(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}
