package penstock.kernel.json

import java.nio.charset.StandardCharsets.UTF_8
import java.util.Arrays

/** Finds fields by the bytes of their names. */
final class Names(names: Array[String]) {
  private val known = names.map(_.getBytes(UTF_8))
  private val table = Array.fill(Integer.highestOneBit(names.length * 2 + 1) * 2)(-1)
  names.indices.foreach(place)

  /** The field called so, or -1. `guess` is looked at first: fields mostly come in the order in which they are declared. */
  def find(bytes: Array[Byte], from: Int, until: Int, guess: Int): Int =
    if (guess < known.length && is(guess, bytes, from, until)) guess
    else {
      var slot = Names.hash(bytes, from, until) & (table.length - 1)
      while (table(slot) >= 0 && !is(table(slot), bytes, from, until)) slot = (slot + 1) & (table.length - 1)
      table(slot)
    }

  private def is(field: Int, bytes: Array[Byte], from: Int, until: Int): Boolean = {
    val name = known(field)
    name.length == until - from && Arrays.equals(name, 0, name.length, bytes, from, until)
  }

  private def place(field: Int): Unit = {
    var slot = Names.hash(known(field), 0, known(field).length) & (table.length - 1)
    while (table(slot) >= 0) slot = (slot + 1) & (table.length - 1)
    table(slot) = field
  }
}

object Names {
  private def hash(bytes: Array[Byte], from: Int, until: Int): Int = {
    var sum = 17
    var at = from
    while (at < until) {
      sum = sum * 31 + bytes(at)
      at += 1
    }
    sum ^ (sum >>> 16)
  }
}
