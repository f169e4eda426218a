import { accepts, type Claim, say } from './claim.ts';
import { numbers } from './numbers.ts';

/** The claims of blocks 7 to 16, from plain arithmetic and small models of their own. */
export function furtherClaims(): readonly Claim[] {
  return [
    sessions(),
    convoys(),
    retries(),
    raise(),
    reuse(),
    semaphores(),
    safeStop(),
    herd(),
    inFlight(),
    clocks(),
  ];
}

function sessions(): Claim {
  let sent = 0;
  for (let thirds = 1; thirds * 10 < 3 * 60; thirds += 1) sent += 1;
  return say(
    'B7',
    'one keep-alive serves a hundred locks',
    sent === 17,
    `${sent} against ${sent * 100} in a minute`,
  );
}

function convoys(): Claim {
  const rate = (sectionsPerSwitch: number) => {
    let ms = 0;
    for (let section = 0; section < 200; section += 1) ms += 1 + (section % sectionsPerSwitch === 0 ? 5 : 0);
    return Math.round(200_000 / ms);
  };
  const [handOver, barging] = [rate(1), rate(10)];
  return say(
    'B8',
    'hand-over pays for every switch',
    handOver === 167 && barging === 667,
    `${handOver} against ${barging} sections/s where a switch takes 5 ms`,
  );
}

function retries(): Claim {
  const ask = (ids: readonly string[]) => {
    let holder = '';
    return ids.map((id) => {
      if (holder === '') holder = id;
      return holder === id;
    });
  };
  const [, same] = ask(['r1', 'r1']);
  const [, other] = ask(['r1', 'r2']);
  return say(
    'B9',
    'only under the same id a retry is let in',
    same === true && other === false,
    'same id: in; new id: not',
  );
}

function raise(): Claim {
  const run = (raised: boolean) => {
    let [value, highest, promised] = [100, 1, 100];
    const aRead = value;
    if (raised) highest = 2;
    const bRead = value;
    if (accepts(highest, 1)) {
      value = aRead + 200;
      promised += 200;
    }
    if (accepts(highest, 2)) {
      value = bRead + 50;
      promised += 50;
    }
    return promised - value;
  };
  return say(
    'B10',
    'without a raise an accepted write is lost',
    run(false) === 200 && run(true) === 0,
    `${run(false)} lost, with a raise ${run(true)}`,
  );
}

function reuse(): Claim {
  const zombie = 5;
  const turned = !accepts(zombie, 1) && accepts(zombie, zombie);
  const kept = accepts(zombie, 6) && !accepts(6, zombie);
  return say(
    'B11',
    'a counter that forgets puts the zombie above the holder',
    turned && kept,
    'token 1 is refused and 5 is not; after 6 it is',
  );
}

function semaphores(): Claim {
  let [refused, highest] = [0, 0];
  for (let write = 0; write < 30; write += 1) {
    const token = (write % 3) + 1;
    if (accepts(highest, token)) highest = token;
    else refused += 1;
  }
  return say(
    'B12',
    'one sequence makes valid holders refuse each other',
    refused === 18,
    `${refused} of 30 valid writes refused`,
  );
}

function safeStop(): Claim {
  const next = numbers(31);
  const exp = (mean: number) => -Math.log(1 - next()) * mean;
  const zombies = { alone: 0, renewed: 0, stopping: 0 };
  for (let i = 0; i < 20_000; i += 1) {
    const work = exp(2);
    const kind = next();
    const trouble = exp(8);
    const at = next() * (work + 0.002);
    const paused = kind <= 0.05 && kind > 0.025;
    const cutOff = kind <= 0.025;
    if (work + (paused ? trouble : 0) > 5) zombies.alone += 1;
    const since = at - Math.floor(at / (5 / 3)) * (5 / 3);
    const without = paused ? trouble : cutOff ? Math.min(trouble, work + 0.002 - at) : 0;
    if (since + without > 5) {
      zombies.renewed += 1;
      if (paused && at > work) zombies.stopping += 1;
    }
  }
  const { alone, renewed, stopping } = zombies;
  return say(
    'B13',
    'renewal and safe-stop leave few zombies, and not none',
    alone === 1995 && renewed === 288 && stopping === 1,
    `${alone}, with renewal ${renewed}, with safe-stop ${stopping}`,
  );
}

function herd(): Claim {
  let woken = 0;
  for (let waiting = 50; waiting > 0; waiting -= 1) woken += waiting;
  return say(
    'B14',
    'waking all costs a square, waking one a line',
    woken === 1275,
    `${woken} wake-ups against 50`,
  );
}

function inFlight(): Claim {
  const lands = [0.01, 0.05, 0.2, 0.5].map((delay) => 9.9 + delay);
  const late = lands.filter((at) => at > 10.2);
  return say(
    'B15',
    'a write sent in time can land too late',
    late.length === 1 && !accepts(2, 1),
    `sent at 9.9 s, landed at ${late[0]} s`,
  );
}

function clocks(): Claim {
  const next = numbers(47);
  const exp = (mean: number) => -Math.log(1 - next()) * mean;
  const tooLong = { reply: 0, send: 0 };
  for (let i = 0; i < 20_000; i += 1) {
    const grantedAt = exp(0.025);
    const repliedAt = grantedAt + exp(0.025);
    if (repliedAt + 10 > grantedAt + 10) tooLong.reply += 1;
    if (0 + 10 > grantedAt + 10) tooLong.send += 1;
  }
  return say(
    'B16',
    'counted from before the send, nobody believes too long',
    tooLong.reply === 20_000 && tooLong.send === 0,
    `${tooLong.send} of 20000; from the reply, ${tooLong.reply}`,
  );
}
