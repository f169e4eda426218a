/*
 * The lock, the lease and the fence, as a model that Spin searches exhaustively.
 *
 * The service keeps one lock: who holds it, who waits, what became of each request. A session can end at any moment (its process is
 * paused, its network is cut), and its client learns of that late or never: it goes on and writes. Messages can be late and come twice: what
 * was sent once can arrive at any later time. Each client reads the resource, and later writes one more than it read.
 *
 *   FENCE    the resource refuses a token lower than the highest it has honoured (S7)
 *   RAISE    a client tells the resource its token before it reads (S8)
 *   FORGET   a defect: the service forgets a request once it was released (against S5)
 */
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
/* A request is one acquire of one client, in a session of its own; its number names it for ever. */
#define REQUESTS (CLIENTS * ROUNDS)
#define NOBODY REQUESTS

mtype = { unknown, waiting, held, done };

/* The service. */
byte holder = NOBODY;
byte last_token = 0;
mtype state[REQUESTS] = unknown;
bool alive[REQUESTS] = true;
byte token[REQUESTS] = 0;       /* what the request was granted */
byte grants[REQUESTS] = 0;      /* how often */
byte queue[REQUESTS];           /* those that wait, first come first served */
byte queued = 0;

/* The network. */
bool acquire_sent[REQUESTS] = false;
bool release_sent[REQUESTS] = false;

/* The resource. */
byte value = 0;
byte honoured = 0;

byte clients_done = 0;

inline grant(q) {
  assert(alive[q]);             /* S3: nothing is granted to a session that has ended */
  assert(holder == NOBODY);     /* S2: one holder */
  assert(grants[q] == 0);       /* S5: a request is granted once, however often it arrives */
  assert(last_token < 255);
  last_token++;                 /* S1: tokens rise */
  token[q] = last_token;
  grants[q]++;
  state[q] = held;
  holder = q
}

inline leave_queue(q) {
  byte from = 0, to = 0;
  do
  :: from < queued ->
     if
     :: queue[from] != q -> queue[to] = queue[from]; to++
     :: else
     fi;
     from++
  :: else -> break
  od;
  queued = to;
  from = 0;
  to = 0
}

/* Where the lock is free, the first in line gets it; whoever is dead there is passed over. */
inline admit() {
  byte first = 0;
  do
  :: holder == NOBODY && queued > 0 ->
     first = queue[0];
     leave_queue(first);
     if
     :: alive[first] -> grant(first)
     :: else -> state[first] = done
     fi
  :: else -> break
  od;
  first = 0
}

/* What a request has, it gives back: its place in the queue or the lock. */
inline withdraw(q) {
  if
  :: state[q] == waiting -> leave_queue(q)
  :: state[q] == held && holder == q -> holder = NOBODY
  :: else
  fi;
#ifdef FORGET
  state[q] = (state[q] == held -> unknown : done);
#else
  state[q] = done;
#endif
  admit()
}

/* What can happen to one request at any time, other than by its client. */
proctype fate(byte q) {
end:
  do
  /* Its acquire arrives, perhaps not for the first time. */
  :: atomic {
       acquire_sent[q] && alive[q] && state[q] == unknown ->
       if
       :: holder == NOBODY && queued == 0 -> grant(q)
       :: else ->
          queue[queued] = q;
          queued++;
          state[q] = waiting
       fi
     }
  /* Its release arrives. */
  :: atomic { release_sent[q] && alive[q] && state[q] == held -> withdraw(q) }
  /* Its session ends; the client is not told. */
  :: atomic { alive[q] && acquire_sent[q] -> alive[q] = false }
  /* A node buries it. */
  :: atomic { !alive[q] && (state[q] == waiting || state[q] == held) -> withdraw(q) }
  od
}

proctype client(byte me) {
  byte round = 0, q, seen;
  do
  :: round < ROUNDS ->
     q = me * ROUNDS + round;
     acquire_sent[q] = true;
     if
     /* It hears of its grant, perhaps long after its session has ended. */
     :: grants[q] > 0 ->
#ifdef RAISE
        atomic {
          if
          :: token[q] >= honoured -> honoured = token[q]
          :: else -> goto over
          fi
        };
#endif
        seen = value;
        atomic {
#ifdef FENCE
          if
          :: token[q] >= honoured -> honoured = token[q]
          :: else -> goto over
          fi;
#endif
          /* No write goes over what its writer has not read. */
          assert(value == seen);
          value = seen + 1
        };
over:   release_sent[q] = true
     /* Or it gives up, and cancels (S6). */
     :: atomic { alive[q] -> withdraw(q) }
     :: !alive[q]
     fi;
     seen = 0;
     round++
  :: else -> break
  od;
  atomic { clients_done++ }
}

init {
  atomic {
    byte i = 0;
    do
    :: i < REQUESTS -> run fate(i); i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < CLIENTS -> run client(i); i++
    :: else -> break
    od;
    i = 0
  };
  /* Once nothing more can happen, nothing is left behind (S6), and everybody came to an end (L1). */
  timeout ->
  assert(clients_done == CLIENTS);
  assert(holder == NOBODY);
  assert(queued == 0)
}
