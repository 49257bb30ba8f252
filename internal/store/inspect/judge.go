// SPDX-License-Identifier: Apache-2.0

package inspect

import "fmt"

// Damage is a store that must not be opened: it says which file, what is wrong with it and what is lost.
type Damage struct {
	File string // that is damaged or missing
	What string // is wrong with it
	Lost string // by it
	// Usable is a database file that is whole, though the rest of the store is not: `wherry restore` takes it. Empty:
	// there is none.
	Usable string
}

func (d *Damage) Error() string {
	text := d.File + " " + d.What
	if d.Lost != "" {
		text += " (lost: " + d.Lost + ")"
	}
	return text
}

// moments is what a whole database lacks of what was acknowledged: etcd writes it every 100 ms, and when it ends in
// order.
const moments = "at most the changes of the last moments before the server ended"

// Judge decides whether a store may be opened; nil: it may. A store of which nothing was ever written is no damage.
// (Pure.)
func Judge(f Facts) *Damage {
	if f.DB.Busy {
		return nil // opening it reports who has it open
	}
	db := DatabaseFile(f.Dir)
	unwritten := !f.DB.Exists || f.DB.Size == 0
	switch {
	case Unborn(f):
		return &Damage{File: logDir(f.Dir), What: "holds no entry, and the database nothing", Lost: "all objects"}
	case f.DB.Err != "":
		return &Damage{File: db, What: "is damaged: " + f.DB.Err, Lost: "the objects in it"}
	case f.Log.Files == 0 && (unwritten || f.DB.Applied == 0):
		return nil // a first start, perhaps one that was killed
	case unwritten && f.DB.Exists:
		return &Damage{File: db, What: "is empty", Lost: "all objects"}
	case unwritten:
		return &Damage{File: db, What: "is missing", Lost: "all objects"}
	}
	if what, file := badLog(f); what != "" {
		return &Damage{File: file, What: what, Lost: moments, Usable: db}
	}
	return nil
}

// Unborn reports whether a store has files but never held anything: its first start was killed after etcd had made its
// log, and before the log's first entry, which names the only member. Etcd takes such a log for that of a cluster,
// waits for its members, and so for ever.
func Unborn(f Facts) bool {
	l, d := f.Log, f.DB
	return l.Files > 0 && l.Empty == "" && l.Err == "" && l.Snapshot == 0 && l.Last == 0 && l.Commit == 0 &&
		!d.Busy && d.Err == "" && d.Applied == 0 && d.Keys == 0
}

// badLog says what is wrong with the log, beside a database that is whole.
func badLog(f Facts) (what, file string) {
	l, dir := f.Log, logDir(f.Dir)
	switch last := max(l.Last, l.Snapshot); {
	case l.Files == 0:
		return "holds no log any more (*.wal)", dir
	case l.Empty != "":
		return "is empty", l.Empty
	case l.Err != "":
		return "is damaged: " + l.Err, dir
	case l.Snapshot > f.DB.Applied:
		return fmt.Sprintf("does not reach back to the database: the log begins after entry %d, the database ends at %d", l.Snapshot, f.DB.Applied), dir
	case last < f.DB.Applied:
		// Etcd would start, count on from here, and take its next writes for those that the database has already.
		return fmt.Sprintf("has lost its end: it ends at entry %d, the database has %d", last, f.DB.Applied), dir
	case last < l.Commit:
		return fmt.Sprintf("has lost its end: it ends at entry %d, entry %d was acknowledged", last, l.Commit), dir
	}
	return "", ""
}
